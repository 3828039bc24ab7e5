"""Questions that go to the archive with their run: what remains of them, and how they come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse

from gates import access
from gates.evidence.masking import may_view_sensitive
from gates.models import ArchivedRequest, Delivery, Grant, Notice, Request, Response, RouterCall
from gates.principals import Principal
from gates.receipts import decision_receipts
from runs.archive.archiving import Part
from runs.models import Run
from runs.pages.archived import KeptAnswer
from runs.plaintext import visible

SHOWN: Final = 100
Made = Sequence[ArchivedRequest]


def why_stay(run: Run) -> str:
    """Why the run must stay for the sake of its questions, in words; empty when it may go."""
    if Request.objects.filter(run=run, status__in=Request.OPEN).exists():
        return "a question of it is open"
    lasting = Q(expires_at=None) | Q(expires_at__gt=Now())
    if Grant.objects.filter(lasting, run=run, revoked_at=None).exists():
        return "something that was allowed in it is allowed still"
    calls = RouterCall.State
    going = (calls.PENDING, calls.SENDING, calls.WAITING)
    if RouterCall.objects.filter(run=run, state__in=going).exists():
        return "a router of it has not answered"
    if (
        Notice.objects.filter(run=run).exists()
        or Delivery.objects.filter(run=run).exclude(state__in=Delivery.OVER).exists()
    ):
        return "a message about it is not sent yet"
    return ""


def make(run: Run) -> Made:
    """A row for every question, with the receipts of those that were answered."""
    rows = list(Request.objects.filter(run=run).select_related("audience"))
    receipts = decision_receipts.receipts_of(run, rows)
    return [
        ArchivedRequest(
            id=row.pk,
            run=run,
            request_id=row.request_id,
            gate_id=row.gate_id,
            status=row.status,
            audience=row.audience,
            asked_by=row.asked_by,
            answered_at=row.answered_at,
            receipt=receipts.get(row.pk, (None, None))[0],
            masked_receipt=receipts.get(row.pk, (None, None))[1],
        )
        for row in rows
    ]


def leave(run: Run, made: Made) -> None:
    """Put those rows in the place of the questions."""
    ArchivedRequest.objects.bulk_create(made)
    RouterCall.objects.filter(run=run).delete()
    Request.objects.filter(run=run).delete()


def come_back(run: Run) -> None:
    """Give the questions the addresses they had; their rows were made anew from the record."""
    for kept in ArchivedRequest.objects.filter(run=run):
        row = Request.objects.filter(run=run, request_id=kept.request_id).first()
        if row is not None and row.pk != kept.pk:
            Request.objects.filter(pk=row.pk).update(id=kept.pk)
            Response.objects.filter(request_id=row.pk).update(request_id=kept.pk)
    ArchivedRequest.objects.filter(run=run).delete()


def questions_of(who: Principal, run: Run) -> list[KeptAnswer]:
    """The questions of an archived run that this person may see, for its page."""
    rows = ArchivedRequest.objects.filter(run=run).select_related("run").order_by("request_id")
    return [
        KeptAnswer(
            gate=visible(row.gate_id),
            status=row.status,
            at=row.answered_at,
            receipt_url=reverse("gates:receipt", args=[row.pk]) if row.receipt else "",
        )
        for row in rows[:SHOWN]
        if access.may_see(who, row)
    ]


PART = Part(why_stay=why_stay, make=make, leave=leave, come_back=come_back)


def receipt_for(who: Principal, pk: UUID) -> dict[str, Any] | None:
    """The kept receipt of an archived question, as this caller may read it; None for others.

    Raises NotAnswered for an archived question that had no answer.
    """
    kept = access.archived_request(who, pk)
    if kept is None:
        return None
    hidden = kept.masked_receipt is not None and not may_view_sensitive(who)
    told = kept.masked_receipt if hidden else kept.receipt
    if told is None:
        raise decision_receipts.NotAnswered("This question has no answer, so no receipt of one.")
    return dict(told)
