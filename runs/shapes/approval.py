"""A person's decision as a step (gates.md section 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from runs.kernel.approvals import (
    APPROVAL_SCHEMA,
    approval_outcome,
    approval_request,
    dead_outcome,
    default_input,
    overridden_outcome,
)
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.graph import AskShape, LeafShape
from runs.kernel.jsonable import JSONValue, JsonValueError, snapshot
from runs.kernel.masking import fault
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.sources import code_digest
from runs.shapes.deadlines import Levels, OnExpiry, deadline_routing
from runs.shapes.job import Asking, Job, Leaf
from runs.shapes.routing import Answering, RoutingRefused, need_people, routing_of

_UNSET: Final = object()
Answer = Callable[[CallbackRequest], Any]


def approval(
    label: str,
    question: str,
    *,
    input: Any = _UNSET,
    target: str | None = None,
    answer: Answer | None = None,
    per_attempt: bool = False,
    due_at: datetime | None = None,
    due_in_seconds: float | None = None,
    due_in_business_hours: float | None = None,
    expires_at: datetime | None = None,
    expires_in_seconds: float | None = None,
    expires_in_business_hours: float | None = None,
    on_expiry: OnExpiry = "reject",
    default_answer: Mapping[str, JSONValue] | None = None,
    escalate_to: Levels | None = None,
    escalate_seconds: float | Sequence[float] | None = None,
    escalate_business_hours: float | Sequence[float] | None = None,
    calendar: Mapping[str, JSONValue] | None = None,
    remind_before_seconds: Sequence[float] = (),
    presentation: Mapping[str, JSONValue] | None = None,
    **answering: Unpack[Answering],
) -> Job:
    """Ask a person: yes passes, no goes to `target` with the note, no answer pauses the run.

    `question` may name the run's parameters as `{name}`. `input` is what the decision covers: a
    JSON value or a function of ctx; by default the summaries of the step's needs.

    Who may answer, and how: `audience`, `priority`, `needed`, `one_per_team`, `exclude_requester`,
    `risk` and `on_answer`, as runs/shapes/routing.py says.

    Seconds count from when the question is posted, and again when it is asked anew. When nobody
    answered by `expires_at`, `on_expiry` says what follows: a no (`reject`), the `default_answer`
    (`answer`), the audience `escalate_to` for `escalate_seconds` more and then a no (`escalate`),
    or nothing but a note in the record (`stay-open`). A list in `escalate_to` is asked one after
    the other. Business hours are the working time of the first team in `audience` that has a
    calendar, or of `calendar`: `{zone, days, opens, closes, holidays}`.
    """
    if not isinstance(label, str) or not label or not isinstance(question, str) or not question:
        raise DeclarationError("approval() needs a label and a question.")
    if answer is not None and not callable(answer):
        raise DeclarationError(f"the answer of approval({label!r}) is no function of the request.")
    who = f"approval({label!r})"
    routing = deadline_routing(
        who,
        APPROVAL_SCHEMA,
        due_at=due_at,
        due_in_seconds=due_in_seconds,
        due_in_business_hours=due_in_business_hours,
        expires_at=expires_at,
        expires_in_seconds=expires_in_seconds,
        expires_in_business_hours=expires_in_business_hours,
        on_expiry=on_expiry,
        default_answer=default_answer,
        escalate_to=escalate_to,
        escalate_seconds=escalate_seconds,
        escalate_business_hours=escalate_business_hours,
        calendar=calendar,
        remind_before_seconds=remind_before_seconds,
    )
    try:
        routing = {**routing_of(answering), **routing}
        need_people(routing, "escalateTo")
    except RoutingRefused as refused:
        raise DeclarationError(f"{who}: {refused}") from None
    if answer is not None and "needed" in routing:
        raise DeclarationError(f"{who} is answered by a function, which is not several people.")
    if why := fault(presentation or {}):
        raise DeclarationError(f"the presentation of approval({label!r}): {why}")
    computed = callable(input)
    has_input = input is not _UNSET and not computed
    ask = AskShape(
        question=question,
        target=target,
        input=_json(label, "input", input) if has_input else None,
        has_input=has_input,
        per_attempt=per_attempt,
        presentation=_json(label, "presentation", presentation or {}),
        routing=_json(label, "routing", routing),
    )
    parts = [code_digest(part) for part in (input if computed else None, answer) if part]
    shape = LeafShape(
        kind="approval",
        label=label,
        by_worker=computed or answer is not None,
        # It only reads and asks, and the same question is asked once: a second try is harmless.
        retry_safe=True,
        ask=ask,
        code="+".join(parts),
    )
    subject = input if computed else None
    return Leaf(shape, lambda ctx: _decide(ctx, shape, subject, answer))


def _json(label: str, part: str, value: Any) -> Any:
    """The value frozen, so that what is asked is what was declared."""
    try:
        return snapshot(value)
    except JsonValueError as error:
        raise DeclarationError(f"the {part} of approval({label!r}) is no JSON: {error}") from error


def _decide(
    ctx: Any, leaf: LeafShape, subject: Callable[[Any], Any] | None, answer: Answer | None
) -> Outcome | Asking:
    assert leaf.ask is not None
    if subject is not None:
        about = ctx.call(subject)
    elif leaf.ask.has_input:
        about = leaf.ask.input
    else:
        about = default_input(ctx.needs or {}, ctx.last_outcome, in_graph=ctx.needs is not None)
    attempt = ctx.graph.attempt if ctx.graph is not None else 1
    try:
        request = approval_request(
            leaf.label,
            leaf.ask,
            subject=about,
            attempt=attempt,
            rounds=ctx.rounds,
            params=ctx.params,
        )
    except ValueError as error:
        raise LoopError("VALIDATION", str(error), phase="body") from error
    given = _answered(ctx, request)
    if given is not None:
        # The answer stands; another question of this gate that is still open is over (D8).
        ctx.callbacks.post(request)
        ctx.asked(request)
    elif answer is not None:
        made = _answer_here(ctx, leaf, request, answer)
        if isinstance(made, Outcome):
            return made
        given = made
    else:
        return Asking(request=request, routing={})
    outcome = approval_outcome(given, question=request.decision_text, target=leaf.ask.target)
    return overridden_outcome(outcome) if request.request_id in ctx.overridden else outcome


def _answered(ctx: Any, request: CallbackRequest) -> Mapping[str, Any] | None:
    """The answer the history already holds; reading posts nothing (gates.md G99)."""
    for event in reversed(ctx.callbacks.history(request.request_id)):
        if event["kind"] == "callback-submitted":
            response: Mapping[str, Any] = event["response"]
            return response
    return None


def _answer_here(
    ctx: Any, leaf: LeafShape, request: CallbackRequest, answer: Answer
) -> Mapping[str, Any] | Outcome:
    """Answer in process as router `<label>:answer` (gates.md G106)."""
    ctx.callbacks.post(request)
    ctx.asked(request)
    router = f"{leaf.label}:answer"
    claim = ctx.callbacks.claim(request.request_id, router)
    if not claim.ok:
        text = f"the question {request.gate_id} could not be claimed: {claim.kind}."
        if claim.kind == "superseded":
            return dead_outcome(request, "superseded")
        return failing(LoopError("VALIDATION", text, phase="body"))
    try:
        given = ctx.call(answer, request)
        response = {key: value for key, value in dict(given).items() if value is not None}
        result = ctx.callbacks.submit(
            request.request_id, claim.claim_token, router, request.digest, response
        )
    except BaseException:
        ctx.callbacks.release(request.request_id, claim.claim_token)
        raise
    if not result.ok:
        ctx.callbacks.release(request.request_id, claim.claim_token)
        return failing(LoopError("VALIDATION", result.reason, phase="body"))
    return response
