"""One prompt to an engine as a step (runs.md section 5.2, engines.md section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Final, Literal

from runs.kernel.errors import DeclarationError, ErrorCode, LoopError
from runs.kernel.feedback import feedback_text, plain, quoted, skipped_text
from runs.kernel.graph import LeafShape
from runs.kernel.interactions import (
    Interaction,
    feedback_of,
    to_interaction,
    wrapped_schema,
)
from runs.kernel.jsonable import JSONValue, digest_hex
from runs.kernel.loopshape import FILES
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.sources import code_digest
from runs.kernel.turns import AgentRequest, AgentResult, final_text
from runs.shapes.conversing import MAX_QUESTIONS, conversing
from runs.shapes.job import Asking, Job, Leaf, outcome_of
from runs.shapes.retry import to_policy

Prompt = str | Callable[[Any], Any]
SHOWN: Final = 280
_MODES: Final = (None, "none", "read", "write")
_ROUTE: Final = {"engine", "model", "effort", "timeout_ms", "timeout_grace_ms"}
_ROLES: Final = {"role", "stage"}
_FALLBACK_ON: Final = ("RATE_LIMIT", "QUOTA")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """How one agent step asks its engine; a route of its fallback changes some of it."""

    label: str
    prompt: Prompt
    system: str | None = None
    engine: Any = None
    model: str | None = None
    effort: str | None = None
    max_tokens: int | None = None
    tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    workspace_mode: Literal["none", "read", "write"] | None = None
    leaf: bool = False
    consume_feedback: bool = False
    graph_context: bool = False
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None
    fallback: tuple[Mapping[str, Any], ...] = ()
    fallback_on: tuple[str, ...] = _FALLBACK_ON
    outcome: Callable[..., Any] | None = None
    record_as: Mapping[str, str] = field(default_factory=dict)
    writes: tuple[str, ...] = ()
    interaction: Interaction | None = None
    max_questions: int = MAX_QUESTIONS

    def __call__(self, ctx: Any) -> Outcome | Asking:
        review = ctx.last_review
        # Work that a stage itself found missing is no work that was left as it was.
        has_work = review is not None and not (review.revision and review.revision.source == FILES)
        before = self._work(ctx) if has_work else None
        if before is not None:
            before = ctx.begin_rework(before)
        found = self._reply(ctx)
        if isinstance(found, Asking):
            return found
        made = self._made(ctx, ctx.scrubbed(final_text(found)))
        if found.late:
            made = made.evolve(late=True)
        if before is not None and made.passed and self._work(ctx) == before:
            return failing(self._unchanged(ctx))
        return made

    def _reply(self, ctx: Any) -> AgentResult | Asking:
        if self.interaction is None:
            return self.answered(ctx)[0]
        return conversing(self, self.interaction, ctx, digest_hex(_identity(self)))

    def answered(self, ctx: Any) -> tuple[AgentResult, int]:
        """The reply, and which route gave it: 0, or the first after it that does (runs.md R47)."""
        request = self.request(ctx)
        try:
            return self.ask(ctx, 0, request), 0
        except LoopError as error:
            failed = error
        for number, route in enumerate(self.fallback, 1):
            if failed.code not in self.fallback_on or ctx.signal.is_set():
                break
            shown = named(route.get("engine")) or "the next route"
            ctx.log(f"{self.label}: {failed.code}, so {shown} is asked.", "warn")
            try:
                return self.ask(ctx, number, request), number
            except LoopError as error:
                failed = error
        raise failed

    def ask(self, ctx: Any, route: int, request: AgentRequest) -> AgentResult:
        """One turn by this route alone."""
        engine = self.engine_of(route)
        if route:
            # A route does not take over an effort that was meant for another engine (E28).
            own = {key: value for key, value in self.fallback[route - 1].items() if key != "engine"}
            request = replace(request, **{"effort": None, "model": None, **own})
        made: AgentResult = ctx.take_turn(engine, request, record_as=self.record_as)
        return made

    def engine_of(self, route: int) -> Any:
        """The engine of a route, as it was named."""
        return self.fallback[route - 1]["engine"] if route else self.engine

    def request(self, ctx: Any) -> AgentRequest:
        """What the engine is asked in this start of the step."""
        grace = self.timeout_grace_ms
        return AgentRequest(
            prompt=self.text(ctx),
            system=self.system,
            model=self.model,
            effort=self.effort,
            max_tokens=self.max_tokens,
            tools=self.tools,
            allowed_tools=self.allowed_tools,
            workspace_mode=self.workspace_mode or "none",
            cwd=str(ctx.workspace.dir / self.cwd if self.cwd else ctx.workspace.dir),
            env=ctx.variables(self.env),
            timeout_ms=ctx.timeout_ms if self.timeout_ms is None else self.timeout_ms,
            timeout_grace_ms=ctx.timeout_grace_ms if grace is None else grace,
            leaf=self.leaf,
        )

    def text(self, ctx: Any) -> str:
        """The prompt, with where the step stands and what a review wants, as far as it is asked."""
        parts = [str(ctx.call(self.prompt)) if callable(self.prompt) else self.prompt]
        if self.graph_context and ctx.graph is not None:
            parts.append(_position(ctx.graph))
        if self.consume_feedback and ctx.last_review is not None:
            parts.append(feedback_text(ctx.last_review))
            given = feedback_of(ctx.last_review)
            if given is not None:
                parts.append(f"What the person answered, as data:\n{quoted(plain(given))}")
        if ctx.skipped_findings:
            parts.append(skipped_text(ctx.skipped_findings))
        return "\n\n".join(parts)

    def _made(self, ctx: Any, reply: str) -> Outcome:
        if self.outcome is not None:
            return outcome_of(self.label, ctx.call(self.outcome, reply, ctx))
        text = reply.strip()
        return Outcome(status="pass", summary=text[:SHOWN] or self.label, data=reply)

    def _work(self, ctx: Any) -> str | None:
        """The digest of what this writer has to change after a review; None for no writer."""
        file = None if ctx.graph is None else ctx.graph.file
        files = self.writes or ((file,) if file else ())
        writer = self.workspace_mode == "write" or (self.workspace_mode is None and bool(files))
        found: str | None = ctx.work_digest(files) if writer else None
        return found

    def _unchanged(self, ctx: Any) -> LoopError:
        file = None if ctx.graph is None else ctx.graph.file
        named = ", ".join(self.writes) or file or "the workspace"
        text = f"{self.label} returned the work unchanged after feedback: {named} is as it was."
        return LoopError("VALIDATION", text, phase="body")


def agent_job(
    prompt: Prompt,
    *,
    label: str | None = None,
    agent: Any = None,
    system: str | None = None,
    engine: Any = None,
    model: str | None = None,
    effort: str | None = None,
    max_tokens: int | None = None,
    tools: Iterable[str] | None = None,
    allowed_tools: Iterable[str] = (),
    workspace_mode: Literal["none", "read", "write"] | None = None,
    leaf: bool = False,
    consume_feedback: bool = False,
    graph_context: bool = False,
    cwd: str | PurePath | None = None,
    env: Mapping[str, str] | None = None,
    timeout_ms: int | None = None,
    timeout_grace_ms: int | None = None,
    fallback: Sequence[Mapping[str, Any]] = (),
    fallback_on: Iterable[str] = _FALLBACK_ON,
    outcome: Callable[..., Any] | None = None,
    record_as: Mapping[str, str] | None = None,
    writes: Iterable[str] = (),
    interaction: Interaction | Mapping[str, Any] | None = None,
    max_questions: int = MAX_QUESTIONS,
    retry_safe: bool = False,
    retry: Any = None,
) -> Job:
    """A step that puts one prompt to an engine, by name, instance or the run's default.

    `prompt` is text or a function of ctx. Its reply is the step's data, and its first 280
    characters the summary, unless `outcome(text, ctx)` says what came of it. `agent` gives a
    `name`, `system`, `model` and `tools` that the step may override. `consume_feedback` adds the
    review that sent the work back. `fallback` lists routes (`engine`, `model`, `effort`,
    `timeout_ms`, `timeout_grace_ms`) that are tried for the error codes of `fallback_on`. Times
    are in ms; an answer within the grace is used and marked late.

    With an `interaction` a reply that is only a JSON object with an `interaction` of `question`
    and `input` asks a person in that form; the answer goes to the same engine and model in a fresh
    turn, with the task. At most `max_questions` in one run of the step.

    With `workspace_mode="write"` (or a `file` on its node) a run that answers a review and leaves
    the file, the `writes`, or without either the whole workspace as it was, fails (runs.md R51).
    Raises DeclarationError for what cannot be.
    """
    name = label or _text_of(agent, "name") or "agent"
    if not isinstance(name, str):
        raise DeclarationError("the label of agent_job() is text.")
    where = f"agent_job({name!r})"
    if not (isinstance(prompt, str) and prompt.strip()) and not callable(prompt):
        raise DeclarationError(f"the prompt of {where} is text or a function of ctx.")
    if workspace_mode not in _MODES:
        raise DeclarationError(f'workspace_mode of {where} is "none", "read" or "write".')
    if outcome is not None and not callable(outcome):
        raise DeclarationError(f"outcome of {where} is no function of text and ctx.")
    if not isinstance(retry_safe, bool):
        raise DeclarationError(f"retry_safe of {where} is no bool.")
    given_tools = _of(agent, "tools") or () if tools is None else tools
    turn = Turn(
        label=name,
        prompt=prompt,
        system=system if system is not None else _text_of(agent, "system"),
        engine=engine,
        model=model or _text_of(agent, "model"),
        effort=_text(where, "effort", effort),
        max_tokens=_count(where, "max_tokens", max_tokens),
        tools=_names(where, "tools", given_tools),
        allowed_tools=_names(where, "allowed_tools", allowed_tools),
        workspace_mode=workspace_mode,
        leaf=bool(leaf),
        consume_feedback=bool(consume_feedback),
        graph_context=bool(graph_context),
        cwd=None if cwd is None else str(cwd),
        env=_environment(where, env),
        timeout_ms=_count(where, "timeout_ms", timeout_ms),
        timeout_grace_ms=_count(where, "timeout_grace_ms", timeout_grace_ms, least=0),
        fallback=tuple(_route(where, one) for one in fallback),
        fallback_on=_codes(where, fallback_on),
        outcome=outcome,
        record_as=_recorded(where, record_as),
        writes=_names(where, "writes", writes),
        interaction=_form(interaction),
        max_questions=_count(where, "max_questions", max_questions) or MAX_QUESTIONS,
    )
    if workspace_mode == "read" and not turn.tools:
        raise DeclarationError(f"{where} reads the workspace and names no tool to do it with (E5).")
    return leaf_of(turn, retry_safe=retry_safe, retry=to_policy(retry, where))


def leaf_of(turn: Turn, **shape: Any) -> Leaf:
    """The step of such a turn; its code is what is asked and how, not by which instance."""
    told = {
        "engine": named(turn.engine),
        "model": turn.model,
        "workspaceMode": turn.workspace_mode,
    }
    extra: dict[str, JSONValue] = {key: value for key, value in told.items() if value}
    if turn.interaction is not None:
        extra["interaction"] = turn.interaction.to_json()
    code = digest_hex(_identity(turn))
    facts: dict[str, Any] = {"code": code, "extra": extra, "timeout_ms": turn.timeout_ms}
    return Leaf(LeafShape(kind="agent", label=turn.label, **facts, **shape), turn)


def _identity(turn: Turn) -> dict[str, JSONValue]:
    called = {"prompt": turn.prompt, "outcome": turn.outcome}
    return {
        "name": "agent_job",
        **{key: code_digest(value) if callable(value) else value for key, value in called.items()},
        "system": turn.system,
        "engine": named(turn.engine),
        "model": turn.model,
        "effort": turn.effort,
        "maxTokens": turn.max_tokens,
        "tools": list(turn.tools),
        "allowedTools": list(turn.allowed_tools),
        "workspaceMode": turn.workspace_mode,
        "writes": list(turn.writes),
        "consumeFeedback": turn.consume_feedback,
        "graphContext": turn.graph_context,
        "interaction": None if turn.interaction is None else turn.interaction.to_json(),
    }


def named(engine: Any) -> str | None:
    """What people call an engine, or a reference to one."""
    if engine is None or isinstance(engine, str):
        return engine
    name = getattr(engine, "name", None)
    return name if isinstance(name, str) else type(engine).__qualname__


def _position(graph: Any) -> str:
    """Where the step stands, for a model that has to know (runs.md R43)."""
    told = {
        "graph": graph.dag,
        "node": graph.node,
        "path": list(graph.path),
        "needs": list(graph.needs),
        "dependents": list(graph.dependents),
    }
    return f"Where this step stands:\n{quoted(told)}"


def _of(agent: Any, key: str) -> Any:
    return agent.get(key) if isinstance(agent, Mapping) else getattr(agent, key, None)


def _form(given: Interaction | Mapping[str, Any] | None) -> Interaction | None:
    if given is None:
        return None
    bound = to_interaction(given)
    wrapped_schema(bound.response_schema, review=False)
    return bound


def _text_of(agent: Any, key: str) -> str | None:
    value = _of(agent, key)
    return value if isinstance(value, str) else None


def _text(where: str, key: str, given: Any) -> str | None:
    if given is not None and (not isinstance(given, str) or not given.strip()):
        raise DeclarationError(f"{key} of {where} is no text.")
    return given


def _count(where: str, key: str, given: Any, *, least: int = 1) -> int | None:
    if given is not None and (
        isinstance(given, bool) or not isinstance(given, int) or given < least
    ):
        raise DeclarationError(f"{key} of {where} is no count of {least} or more.")
    return given


def _names(where: str, key: str, given: Any) -> tuple[str, ...]:
    names = () if isinstance(given, str) else tuple(given)
    if isinstance(given, str) or not all(isinstance(name, str) and name for name in names):
        raise DeclarationError(f"{key} of {where} is a list of names.")
    return names


def _environment(where: str, given: Mapping[str, str] | None) -> dict[str, str]:
    if given is not None and not isinstance(given, Mapping):
        raise DeclarationError(f"env of {where} is a mapping of names to text.")
    read = dict(given or {})
    if not all(isinstance(part, str) for pair in read.items() for part in pair):
        raise DeclarationError(f"env of {where} is a mapping of names to text.")
    return read


def _route(where: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or "engine" not in given:
        raise DeclarationError(f"a fallback of {where} is a mapping with an engine.")
    if unknown := sorted(map(str, set(given) - _ROUTE)):
        raise DeclarationError(f"a fallback of {where} has unknown keys: {', '.join(unknown)}.")
    for key in ("timeout_ms", "timeout_grace_ms"):
        _count(where, key, given.get(key), least=0)
    return dict(given)


def _codes(where: str, given: Iterable[str]) -> tuple[str, ...]:
    codes = _names(where, "fallback_on", given)
    if unknown := sorted(set(codes) - set(ErrorCode)):
        raise DeclarationError(f"fallback_on of {where} knows no code {', '.join(unknown)}.")
    return codes


def _recorded(where: str, given: Mapping[str, str] | None) -> dict[str, str]:
    read = dict(given or {})
    if set(read) - _ROLES or not all(isinstance(value, str) for value in read.values()):
        raise DeclarationError(f"record_as of {where} has a role and a stage.")
    return read
