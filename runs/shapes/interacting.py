"""How a step puts a rich question and takes its answer (gates.md G131-G134)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from runs.kernel import interactions
from runs.kernel.approvals import fill
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.graph import AskShape, LeafShape
from runs.kernel.interactions import Interaction
from runs.kernel.jsonable import JSONValue, JsonValueError, snapshot
from runs.kernel.masking import fault
from runs.shapes.deadlines import Levels, OnExpiry, deadline_routing
from runs.shapes.job import Asking
from runs.shapes.routing import Answering, RoutingRefused, routing_of

_TIMES = (
    "due_at",
    "due_in_seconds",
    "due_in_business_hours",
    "expires_at",
    "expires_in_seconds",
    "expires_in_business_hours",
    "escalate_to",
    "escalate_seconds",
    "escalate_business_hours",
    "calendar",
)
# One person's words cannot be counted with another's.
_NOT_HERE = ("needed", "one_per_team")


class Asked(Answering, total=False):
    """Who may answer and until when, as approval() has it; nothing is answered by the clock."""

    due_at: datetime | None
    due_in_seconds: float | None
    due_in_business_hours: float | None
    expires_at: datetime | None
    expires_in_seconds: float | None
    expires_in_business_hours: float | None
    on_expiry: OnExpiry
    escalate_to: Levels | None
    escalate_seconds: float | Sequence[float] | None
    escalate_business_hours: float | Sequence[float] | None
    calendar: Mapping[str, JSONValue] | None
    remind_before_seconds: Sequence[float]


def ask_shape(
    who: str,
    question: str,
    interaction: Interaction,
    given: Mapping[str, Any],
    *,
    target: str | None = None,
    presentation: Mapping[str, Any] | None = None,
) -> AskShape:
    """The question as the record declares it; raises DeclarationError."""
    if not isinstance(question, str) or not question.strip():
        raise DeclarationError(f"{who} needs a question.")
    if given.get("on_expiry") == "answer":
        raise DeclarationError(f"on_expiry of {who}: only a person answers it, not the clock.")
    for name in _NOT_HERE:
        if given.get(name):
            raise DeclarationError(f"{who} takes one person's answer, so it has no {name}.")
    if why := fault(presentation or {}):
        raise DeclarationError(f"the presentation of {who}: {why}")
    try:
        answering = {name: value for name, value in given.items() if name in _answering()}
        if unknown := sorted(set(given) - set(answering) - set(Asked.__annotations__)):
            raise RoutingRefused(unknown[0], "is nothing that a question has.")
        routing = routing_of(answering) | _times(who, interaction, given)
        shown = cast("Mapping[str, JSONValue]", snapshot(dict(presentation or {})))
        kept = cast("Mapping[str, JSONValue]", snapshot(routing))
    except (RoutingRefused, JsonValueError) as refused:
        raise DeclarationError(f"{who}: {refused}") from None
    return AskShape(question=question, target=target, presentation=shown, routing=kept)


def _answering() -> set[str]:
    return set(Answering.__annotations__)


def _times(who: str, interaction: Interaction, given: Mapping[str, Any]) -> dict[str, Any]:
    times: dict[str, Any] = {name: given.get(name) for name in _TIMES}
    return deadline_routing(
        who,
        interaction.response_schema,
        **times,
        on_expiry=given.get("on_expiry", "reject"),
        default_answer=None,
        remind_before_seconds=given.get("remind_before_seconds", ()),
    )


def put(
    ctx: Any,
    leaf: LeafShape,
    interaction: Interaction,
    *,
    material: Any,
    presentation: Mapping[str, Any],
    review: bool,
) -> Mapping[str, JSONValue] | Asking:
    """The answer there is to this step's question, or the question to wait on (G131).

    Raises LoopError VALIDATION for a material that is no JSON and for a response that is none;
    what the handler raises is the step's failure, and its question stays open.
    """
    assert leaf.ask is not None
    identity = interactions.identity_of(leaf.label, leaf.ask.question, interaction)
    about = {
        "requester": interactions.requester(ctx.path, identity, ctx.iteration),
        "material": material,
    }
    try:
        request = interactions.interaction_request(
            interaction,
            path=ctx.path,
            question=fill(leaf.ask.question, ctx.params),
            input=about,
            review=review,
            presentation=presentation,
        )
    except (JsonValueError, ValueError) as error:
        raise LoopError("VALIDATION", str(error), phase="body") from error
    return ask_for(ctx, interaction, request, review=review)


def ask_for(
    ctx: Any, interaction: Interaction, request: CallbackRequest, *, review: bool
) -> Mapping[str, JSONValue] | Asking:
    """The answer there is to this question, from its handler too; else the question to wait on."""
    answer = _answered(ctx, request)
    if answer is None:
        routing = {"purpose": interactions.REVIEW if review else interactions.PURPOSE}
        # What a no leads to where the step stands in a loop by itself: another round.
        again = {"again": True} if review and ctx.needs is None and ctx.rounds else {}
        return _asked(ctx, interaction, request, {**routing, **again})
    return answer


def _answered(ctx: Any, request: CallbackRequest) -> Mapping[str, JSONValue] | None:
    given = interactions.answer_in(ctx.callbacks.history(request.request_id))
    if given is None:
        return None
    # The answer stands; another question of this gate that is still open is over (D8).
    ctx.callbacks.post(request)
    ctx.asked(request)
    return interactions.checked_response(given)


def _asked(
    ctx: Any, interaction: Interaction, request: CallbackRequest, routing: Mapping[str, Any]
) -> Mapping[str, JSONValue] | Asking:
    if interaction.answer is None or ctx.signal.is_set():
        return Asking(request=request, routing=routing)
    ctx.callbacks.post(request)
    ctx.asked(request)
    claim = ctx.callbacks.claim(request.request_id, interaction.router)
    if not claim.ok:
        # Somebody else is at it, or has answered since: the step waits like any other.
        return Asking(request=request, routing=routing)
    response = _handled(ctx, interaction, request, claim.claim_token)
    if response is None:
        return Asking(request=request, routing={**routing, "cancelled": True})
    return response


def _handled(
    ctx: Any, interaction: Interaction, request: CallbackRequest, token: str
) -> Mapping[str, JSONValue] | None:
    """What the handler answered; the claim is free again unless that was recorded (G132, G133)."""
    kept = False
    try:
        given = ctx.call(interaction.answer, request, ctx.signal)
        if given is None:
            return None
        response = interactions.checked_response(given)
        result = ctx.callbacks.submit(
            request.request_id, token, interaction.router, request.digest, response
        )
        if not result.ok:
            raise LoopError("VALIDATION", str(result.reason), phase="body")
        kept = True
        return response
    finally:
        if not kept:
            ctx.callbacks.release(request.request_id, token)
