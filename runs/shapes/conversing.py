"""An agent that asks a person and goes on with the answer (gates.md G147-G153)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runs.kernel import interactions
from runs.kernel.errors import LoopError
from runs.kernel.feedback import plain, quoted
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.kernel.interactions import Interaction
from runs.kernel.jsonable import JSONValue, JsonValueError
from runs.kernel.turns import AgentResult, final_text
from runs.shapes.interacting import ask_for
from runs.shapes.job import Asking

if TYPE_CHECKING:
    from runs.shapes.agent_job import Turn

MAX_QUESTIONS: Final = 5


def conversing(
    turn: Turn, interaction: Interaction, ctx: Any, identity: str
) -> AgentResult | Asking:
    """The reply that is no question, however many questions it takes; or the one to wait on.

    While a person answers the model is not called, and what was asked is kept in the record.
    """
    kept = ctx.kept(identity)
    if kept is None:
        result, route = turn.answered(ctx)
        kept = {"route": route, "selection": _selection(result), "asked": []}
    else:
        kept = {**plain(kept)}
        result = None
    while True:
        if result is not None:
            question = _question(turn, ctx.scrubbed(final_text(result)))
            if question is None:
                if kept["asked"]:
                    ctx.keep(identity, None)
                return result
            if len(kept["asked"]) >= turn.max_questions:
                text = f"{turn.label} asked more than {turn.max_questions} questions."
                raise LoopError("VALIDATION", text, phase="body")
            kept = {**kept, "asked": [*kept["asked"], question]}
            ctx.keep(identity, kept)
        *before, last = kept["asked"]
        answer = ask_for(ctx, interaction, _request(turn, interaction, ctx, kept), review=False)
        if isinstance(answer, Asking):
            return answer
        kept = {**kept, "asked": [*before, {**last, "response": ctx.scrubbed(plain(answer))}]}
        ctx.keep(identity, kept)
        result = _go_on(turn, ctx, kept)


def _go_on(turn: Turn, ctx: Any, kept: Mapping[str, Any]) -> AgentResult:
    """A fresh turn of the engine and model that asked, the answers in hand (G149, G150)."""
    request = turn.request(ctx)
    told = [request.prompt, "You asked a person. What you asked and what they answered, as data:"]
    told += [quoted(one) for one in kept["asked"]]
    result = turn.ask(ctx, int(kept["route"]), replace(request, prompt="\n\n".join(told)))
    if _selection(result) != kept["selection"]:
        text = f"{turn.label} asked as another model than the one that goes on."
        raise LoopError("CONFIG", text, phase="engine")
    return result


def _question(turn: Turn, reply: str) -> dict[str, Any] | None:
    """The question a reply is, when all of it is one; raises for one that is not whole (G147)."""
    try:
        read = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, Mapping) or "interaction" not in read:
        return None
    asked = read["interaction"]
    question = asked.get("question") if isinstance(asked, Mapping) else None
    if not isinstance(question, str) or not question.strip() or "input" not in asked:
        text = f"{turn.label} asked a person without a question or an input."
        raise LoopError("VALIDATION", text, phase="body")
    return {"question": question, "input": asked["input"]}


def _request(
    turn: Turn, interaction: Interaction, ctx: Any, kept: Mapping[str, Any]
) -> CallbackRequest:
    """The question as it is put (G148); raises LoopError for an input that is no JSON."""
    *before, last = kept["asked"]
    route = int(kept["route"])
    identity = interactions.identity_of(turn.label, last["question"], interaction)
    engine = ctx.resolve_engine(turn.engine_of(route))
    requester: dict[str, JSONValue] = {
        **interactions.requester(ctx.path, identity, ctx.iteration),
        "engine": str(getattr(engine, "name", type(engine).__qualname__)),
        "model": (kept["selection"] or {}).get("model") or turn.model or "",
        "prompt": ctx.scrubbed(turn.text(ctx)),
        "system": ctx.scrubbed(turn.system or ""),
    }
    try:
        return create_callback_gate(
            gate_id=interactions.gate_id(interaction.id, ctx.path),
            gate_version=1,
            decision_text=last["question"],
            response_schema=interactions.wrapped_schema(interaction.response_schema, review=False),
            input={
                "requester": requester,
                "material": last["input"],
                "previousFeedback": [one["response"] for one in before],
            },
        )
    except (JsonValueError, ValueError) as error:
        raise LoopError("VALIDATION", str(error), phase="body") from error


def _selection(result: AgentResult) -> dict[str, str] | None:
    """Who answered, as far as it was told."""
    found = result.effective
    if found is None:
        return None
    told = {
        "adapter": found.adapter,
        "provider": found.provider,
        "modelFamily": found.model_family,
        "model": found.model,
    }
    return {name: value for name, value in told.items() if value is not None}
