"""A scored question to an engine, as a condition (runs.md R95-R99)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.confidence import (
    fraction_in,
    geometric_mean,
    is_share,
    object_with,
    share,
    tagged,
)
from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import JSONValue, digest_hex
from runs.kernel.judging import OutOfRange
from runs.kernel.outcomes import Outcome
from runs.kernel.sources import code_digest
from runs.kernel.turns import AgentRequest, final_text

Text = str | Callable[[Any, Outcome | None], Any]
OUTPUT_CAP: Final = 20_000
TOKENS: Final = 512
TOKENS_WITH_PROSE: Final = 2048
_PLAIN: Final = (
    'Reply with one JSON object and nothing else: {"verdict": "yes" or "no", '
    '"confidence": a number from 0 to 1, "reason": "one sentence"}.'
)
_TAG: Final = (
    "Explain in prose, then close with how sure you are that the answer is yes, on a line of its "
    "own: <confidence>N%</confidence>."
)


@dataclass(frozen=True, kw_only=True)
class _Check:
    question: Text
    threshold: float
    model: str | None
    agent: Any
    engine: Any
    cwd: str | None
    timeout_ms: int | None
    context: Text | None
    max_tokens: int
    dimensions: tuple[str, ...]
    confidence_tag: bool
    max_reason_chars: int

    def __call__(self, ctx: Any, last: Outcome | None) -> ConditionResult:
        reply = ctx.scrubbed(final_text(ctx.take_turn(self.engine, self.request(ctx, last))))
        if self.confidence_tag:
            return self.by_tag(reply)
        return self.by_dimensions(reply) if self.dimensions else self.by_verdict(reply)

    def request(self, ctx: Any, last: Outcome | None) -> AgentRequest:
        parts = [_said(ctx, last, self.question)]
        if self.context is not None:
            parts.append(f"What there is to judge:\n{_said(ctx, last, self.context)}")
        parts.append(self.form())
        return AgentRequest(
            prompt="\n\n".join(parts),
            system=_of(self.agent, "system"),
            model=self.model or _of(self.agent, "model"),
            max_tokens=self.max_tokens,
            cwd=self.cwd,
            env=ctx.variables(),
            timeout_ms=ctx.timeout_ms if self.timeout_ms is None else self.timeout_ms,
            timeout_grace_ms=ctx.timeout_grace_ms,
            leaf=True,
        )

    def form(self) -> str:
        if self.confidence_tag:
            return _TAG
        if not self.dimensions:
            return _PLAIN
        scores = ", ".join(f'"{name}": a number from 0 to 1' for name in self.dimensions)
        return (
            "Reply with one JSON object and nothing else: "
            f'{{"scores": {{{scores}}}, "reason": "one sentence"}}.'
        )

    def by_verdict(self, reply: str) -> ConditionResult:
        found = object_with(reply, "verdict")
        if found is None:
            return self.unreadable(reply)
        sure = share(found.get("confidence"))
        verdict = str(found["verdict"]).strip().lower()
        met = verdict == "yes" and sure >= self.threshold
        said = self.reason(str(found.get("reason") or ""))
        return ConditionResult(
            met=met, reason=_told(f"{verdict} at {sure:g}", said), confidence=sure
        )

    def by_dimensions(self, reply: str) -> ConditionResult:
        found = object_with(reply, "scores") or object_with(reply, self.dimensions[0])
        if found is None:
            return self.unreadable(reply)
        scores = found.get("scores", found)
        given = scores if isinstance(scores, Mapping) else {}
        each = {name: share(given.get(name)) for name in self.dimensions}
        mean = geometric_mean(list(each.values()))
        shown = ", ".join(f"{name} {score:g}" for name, score in each.items())
        said = self.reason(str(found.get("reason") or ""))
        return ConditionResult(
            met=mean >= self.threshold,
            reason=_told(f"{mean:.3g} of {shown}", said),
            confidence=mean,
        )

    def by_tag(self, reply: str) -> ConditionResult:
        prose, said = tagged(reply, "confidence")
        sure = None if said is None else fraction_in(said)
        prose = prose.strip()
        return ConditionResult(
            met=sure is not None and sure >= self.threshold,
            reason=self.reason(prose) or "no prose",
            confidence=sure or 0.0,
            output=prose[:OUTPUT_CAP] or None,
        )

    def unreadable(self, reply: str) -> ConditionResult:
        said = self.reason(reply)
        return ConditionResult(met=False, reason=_told("no readable verdict", said), confidence=0.0)

    def reason(self, text: str) -> str:
        line = " ".join(text.split())
        return line if len(line) <= self.max_reason_chars else f"{line[: self.max_reason_chars]}…"


def agent_check(
    question: Text,
    *,
    threshold: float = 0.8,
    model: str | None = None,
    agent: Any = None,
    engine: Any = None,
    cwd: str | PurePath | None = None,
    timeout_ms: int | None = None,
    context: Text | None = None,
    max_tokens: int | None = None,
    dimensions: Sequence[str] | None = None,
    confidence_tag: bool = False,
    max_reason_chars: int = 280,
) -> Condition:
    """Met when an engine says yes with at least this confidence; unreadable replies are a no.

    `question` and `context` are text or functions `(ctx, last)`, sync or async. With `dimensions`
    the engine scores each and the geometric mean counts; with `confidence_tag` it writes prose and
    closes with `<confidence>N%</confidence>`. `agent` gives a `system` text and a `model`. The
    engine works in `cwd` only; times are in ms. An engine that fails raises (code ENGINE or its
    own).
    """
    for name, value in (("question", question), ("context", context)):
        given = (isinstance(value, str) and value.strip()) or callable(value)
        if not given and not (name == "context" and value is None):
            raise DeclarationError(
                f"the {name} of agent_check() is text or a function (ctx, last)."
            )
    if not is_share(threshold):
        raise OutOfRange(f"the threshold of agent_check() is from 0 to 1, not {threshold!r}.")
    names = tuple(dimensions or ())
    if isinstance(dimensions, str) or not all(isinstance(name, str) and name for name in names):
        raise DeclarationError("the dimensions of agent_check() are names.")
    tokens = TOKENS_WITH_PROSE if confidence_tag else TOKENS
    check = _Check(
        question=question,
        threshold=threshold,
        model=model,
        agent=agent,
        engine=engine,
        cwd=None if cwd is None else str(cwd),
        timeout_ms=_count("timeout_ms", timeout_ms),
        context=context,
        max_tokens=_count("max_tokens", max_tokens) or tokens,
        dimensions=names,
        confidence_tag=confidence_tag,
        max_reason_chars=_count("max_reason_chars", max_reason_chars) or 280,
    )
    shape = {"op": "code", "label": _label(question), "code": digest_hex(_identity(check))}
    return Condition(shape, check=check)


def _count(name: str, given: int | None) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise DeclarationError(f"{name} of agent_check() is no count of 1 or more.")
    return given


def _label(question: Text) -> str:
    if callable(question):
        return "agent check"
    line = " ".join(question.split())
    return f"agent check: {line if len(line) <= 60 else f'{line[:59]}…'}"


def _identity(check: _Check) -> dict[str, JSONValue]:
    """What was asked and how, not by which engine instance (runs.md R234)."""
    texts = {"question": check.question, "context": check.context}
    named = (
        check.engine if isinstance(check.engine, str | None) else type(check.engine).__qualname__
    )
    return {
        "name": "agent_check",
        **{key: code_digest(value) if callable(value) else value for key, value in texts.items()},
        "threshold": check.threshold,
        "model": check.model or _of(check.agent, "model"),
        "system": _of(check.agent, "system"),
        "engine": named,
        "cwd": check.cwd,
        "timeoutMs": check.timeout_ms,
        "maxTokens": check.max_tokens,
        "dimensions": list(check.dimensions),
        "confidenceTag": check.confidence_tag,
        "maxReasonChars": check.max_reason_chars,
    }


def _of(agent: Any, key: str) -> str | None:
    """A text of an agent's definition, an object or a mapping."""
    value = agent.get(key) if isinstance(agent, Mapping) else getattr(agent, key, None)
    return value if isinstance(value, str) else None


def _said(ctx: Any, last: Outcome | None, text: Text) -> str:
    return str(ctx.call(text, ctx, last)) if callable(text) else text


def _told(verdict: str, said: str) -> str:
    return f"{verdict}: {said}" if said else verdict
