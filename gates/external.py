"""Questions of outside programs: each stream is a run of its own, made on first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError

from gates import access, columns, deadlines
from gates.errors import DefinitionRefused, SchemaRefused
from gates.evidence import masking
from gates.models import Request
from gates.principals import Principal
from runs import record
from runs.errors import TooManyOpen
from runs.inputs.validation import SchemaFault, check_schema
from runs.kernel import callbacks
from runs.kernel.clocks import timed
from runs.kernel.events import EventKind
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.kernel.jsonable import JsonValueError
from runs.models import Run
from runs.people import quotas
from runs.people.audiences import audience_for
from runs.shapes import routing as answering_rules
from runs.stored import append_all

DEFINITION_FIELDS: Final = {
    "gate_id": "gateId",
    "gate_version": "gateVersion",
    "decision_text": "decisionText",
    "response_schema": "responseSchema",
    "input": "input",
    "presentation": "presentation",
}
ROUTING_FIELDS: Final = frozenset({"kind", *answering_rules.FIELDS, *deadlines.FIELDS})
MAX_TEXT: Final = {"gateId": 500, "decisionText": 200_000}


def post_request(
    definition: Mapping[str, Any],
    *,
    principal: Principal,
    stream: str,
    routing: Mapping[str, Any] | None = None,
) -> tuple[Request, bool]:
    """Ask in the stream; the same open question again is the same row, and then nothing is new.

    Another question of the same gate that is still open in the stream is superseded.
    """
    access.need_scope(principal, "start")
    request = _request(definition)
    routed = _routing(routing or {}, request.response_schema)
    run = _stream(stream, principal)
    with record.turn(run.pk, actor=principal.actor, surface=principal.surface) as turn:
        events = callbacks.post(turn.state.callbacks, request)
        append_all(turn, (), events)
        created = any(event["kind"] == EventKind.REQUESTED for event in events)
        if created and len(events) == 1:  # it takes no other question's place
            _need_room(principal)
        if created:
            facts = {
                "requestId": request.request_id,
                "purpose": "gate",
                **timed(routed, turn.now_ms),
            }
            turn.append(EventKind.ROUTED, (), facts)
    row = Request.objects.select_related("run").get(
        run=run, request_id=columns.request_id(request.request_id)
    )
    return row, created


def _need_room(principal: Principal) -> None:
    """Raise TooManyOpen for a program with as many open questions as one may have."""
    limit: int = settings.OBVERSA_MAX_OPEN_QUESTIONS
    asked = Request.objects.filter(asked_by=principal.actor, status__in=Request.OPEN)
    if quotas.is_full(asked, limit):
        raise TooManyOpen(
            f"You have {limit} questions open, and no more are let in. Wait for answers, or "
            "withdraw some."
        )


def _request(definition: Mapping[str, Any]) -> CallbackRequest:
    try:
        request = create_callback_gate(definition)
        check_schema(request.response_schema)
    except JsonValueError:
        raise
    except SchemaFault as fault:
        raise SchemaRefused(f"responseSchema: {fault}") from None
    except (ValueError, TypeError) as error:
        raise _refused(str(error)) from None
    if why := masking.fault(request.presentation):
        raise DefinitionRefused("presentation", f"presentation: {why}")
    for name, limit in MAX_TEXT.items():
        value = request.gate_id if name == "gateId" else request.decision_text
        if len(value) > limit:
            raise DefinitionRefused(name, f"{name} is longer than {limit} characters.")
    return request


def _refused(message: str) -> DefinitionRefused | SchemaRefused:
    """The kernel's refusal with the field as it is written on the wire."""
    for name, wire in DEFINITION_FIELDS.items():
        if message.startswith((name, wire, f"'{name}'", f"'{wire}'")):
            told = message.replace(name, wire)
            is_schema = wire == "responseSchema" and not told.startswith(f"{wire} is missing")
            return SchemaRefused(told) if is_schema else DefinitionRefused(wire, told)
    return DefinitionRefused("", message)


def _routing(given: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    odd = sorted(set(given) - ROUTING_FIELDS)
    if odd:
        raise DefinitionRefused(odd[0], f"{odd[0]} is not a field of a question.")
    # Everyone may be meant by no audience at all, and that is said in the record too.
    audience = deadlines.audience("audience", given.get("audience"))
    timed = deadlines.deadline_routing(given, schema)
    try:
        answering = answering_rules.wire_routing(
            {name: given.get(name) for name in answering_rules.FIELDS}
        )
        routed: dict[str, Any] = {"audience": audience, **answering, **timed}
        answering_rules.need_people(routed, "escalateTo")
    except answering_rules.RoutingRefused as refused:
        raise DefinitionRefused(refused.name, f"{refused}") from None
    if given.get("kind") is not None:
        if given["kind"] not in (Request.Kind.GATE, Request.Kind.QUESTION):
            raise DefinitionRefused("kind", "kind is gate or question.")
        routed["kind"] = given["kind"]
    return routed


def _stream(stream: str, principal: Principal) -> Run:
    """The run of the stream; it belongs to whoever asked in it first."""
    if not isinstance(stream, str) or not stream.strip() or len(stream) > 200 or "\0" in stream:
        raise DefinitionRefused("stream", "stream is a name of 1 to 200 characters.")
    run = _known(stream) or _opened(stream, principal)
    if not (principal.owns(run.started_by) or access.may_operate(principal)):
        raise access.Forbidden(f"The stream {stream!r} belongs to somebody else.")
    return run


def _known(stream: str) -> Run | None:
    return Run.objects.filter(kind=Run.Kind.EXTERNAL, stream=stream).first()


def _opened(stream: str, principal: Principal) -> Run:
    owner = principal.actor.partition("/")[0]
    quotas.need_room_for_a_run(owner)
    run = Run(
        kind=Run.Kind.EXTERNAL,
        stream=stream,
        title=stream,
        audience=audience_for(_only(principal)),
        started_by=owner,
    )
    try:
        with record.first_turn(run, actor=principal.actor, surface=principal.surface) as turn:
            facts = {"runId": str(run.pk), "session": 1, "stream": stream}
            turn.append(EventKind.RUN_START, (), facts)
    except IntegrityError:
        # Somebody opened it in the same moment; the constraint let one of us through.
        won = _known(stream)
        if won is None:
            raise
        return won
    return run


def _only(principal: Principal) -> dict[str, list[str]]:
    """The stream as a whole is its owner's; each question in it names its own audience."""
    if principal.key_name:
        return {"keys": [principal.key_name]}
    assert principal.user is not None
    return {"users": [principal.user.get_username()]}
