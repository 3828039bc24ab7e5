"""Questions as they go over the wire."""

from __future__ import annotations

from typing import Any, Final

from gates.access import bars_requester
from gates.actions import cards
from gates.evidence.masking import input_for, may_view_sensitive, pointers_for
from gates.models import Request, Response
from gates.principals import Principal
from gates.projection import about
from gates.receipts.next_steps import Receipt
from gates.receipts.sealed import was_narrowed
from runs import wire
from runs.kernel.jsonable import thaw
from runs.models import Event
from runs.shapes.routers import router_name
from runs.turns import folding

Wire = dict[str, Any]
_GIVEN_BACK: Final = ("requestId", "gateId", "decisionText")


def request(row: Request, who: Principal | None = None) -> Wire:
    """A question as this caller sees it. Wants its run, audience and responses loaded."""
    return {
        "id": str(row.pk),
        **_identity(row),
        "input": input_for(who, row),
        "masked": list(pointers_for(who, row)),
        "action": cards.wire(row),
        "kind": row.kind,
        "status": row.status,
        "runId": str(row.run_id),
        "stepPath": row.step_path,
        "stream": row.run.stream,
        "audience": row.audience.spec,
        "holder": row.holder or None,
        "claimedAt": wire.time(row.claimed_at),
        "priority": row.priority,
        "dueAt": wire.time(row.due_at),
        "expiresAt": wire.time(row.expires_at),
        "onExpiry": row.routing.get("onExpiry"),
        "defaultAnswer": row.routing.get("defaultAnswer"),
        "router": router_name(row.routing) or None,
        "onAnswer": row.on_answer,
        "needed": row.needed,
        "onePerTeam": row.routing.get("onePerTeam") is True,
        "excludeRequester": bars_requester(row.routing),
        "risk": row.routing.get("risk"),
        "how": row.how or None,
        "override": row.routing.get("override"),
        "responses": [_response(given) for given in row.responses.all()],
        "askedBy": row.asked_by,
        "supersededBy": row.superseded_by or None,
        "closedReason": row.closed_reason or None,
        "createdAt": wire.time(row.created_at),
        "answeredAt": wire.time(row.answered_at),
        "answeredBy": row.answered_by or None,
        "url": wire.address(row.get_absolute_url()),
    }


def _identity(row: Request) -> Wire:
    """The eight fields of the contract; whoever reads them whole computes the digest again."""
    fields = {
        "requestId": row.request_id,
        "gateId": row.gate_id,
        "gateVersion": row.gate_version,
        "digest": row.digest,
        "decisionText": row.decision_text,
        "responseSchema": row.response_schema,
        "input": row.input,
        "presentation": row.presentation,
    }
    if was_narrowed(row):
        asked = folding.to_event(Event.objects.get(run_id=row.run_id, seq=row.asked_seq))
        fields |= {name: thaw(asked.fields["request"][name]) for name in _GIVEN_BACK}
    return fields


def _response(row: Response) -> Wire:
    return {
        "response": row.response,
        "actor": row.actor,
        "at": wire.time(row.at),
        "surface": row.surface,
        "deputyFor": row.deputy_for or None,
        "overrides": row.overrides,
    }


def receipt(given: Receipt) -> Wire:
    """What became of an answer."""
    return {
        "ok": True,
        "response": given.response,
        "next": given.next,
        "actor": given.actor,
        "at": wire.time(given.at),
        "seq": given.seq,
        "needed": given.needed,
        "responded": given.responded,
        "settled": given.settled,
        "alreadyResolved": given.already_resolved,
    }


def history(row: Request, who: Principal | None = None) -> list[Wire]:
    """What happened to the question, in order; refused attempts too, without what they sent."""
    tell = wire.whole_event if may_view_sensitive(who) else wire.event
    rows = Event.objects.filter(
        run_id=row.run_id, kind__startswith="callback-", payload__contains=row.digest
    )
    facts = (folding.to_event(event) for event in rows.order_by("seq"))
    return [tell(fact) for fact in facts if about(fact) == row.request_id]
