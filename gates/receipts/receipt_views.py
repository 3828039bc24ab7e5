"""The receipt of an answer as a file: for the page of its question, and over REST."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from ninja import Path, Router

from gates.receipts import archived, decision_receipts
from gates.receipts.decision_receipts import NotAnswered, RecordAltered
from gates.receipts.receipt_schemas import ReceiptFile, ReceiptKey
from gates.schemas import EXAMPLE_REQUEST
from runs.inputs.formfields import pretty
from runs.people.visitors import caller as page_caller
from runs.replies import caller, reply
from runs.report.verifying import ALGORITHM

router = Router(tags=["Requests"], by_alias=True)
RequestKey = Annotated[
    UUID, Path(alias="id", description="The `id` of the question.", example=EXAMPLE_REQUEST)
]


@router.get(
    "/requests/{uuid:id}/receipt",
    operation_id="getRequestReceipt",
    summary="The receipt of an answer",
    response=ReceiptFile,
    openapi_extra={"x-refusals": ["scope", "not-found", "not-answered", "record-altered"]},
)
def get_receipt(request: HttpRequest, key: RequestKey) -> HttpResponse:
    """A file that `obversa-record --verify-receipt` checks without this installation.

    Where the caller may not read all of the question, its canonical text is left out.
    """
    who = caller(request, "read")
    return reply(archived.receipt_for(who, key) or decision_receipts.receipt_of(who, key))


@router.get(
    "/receipt-key",
    operation_id="getReceiptKey",
    summary="The key that receipts are checked with",
    response=ReceiptKey,
    openapi_extra={"x-refusals": ["scope"]},
)
def get_receipt_key(request: HttpRequest) -> HttpResponse:
    """The public key of this installation; it changes with its secret key."""
    caller(request, "read")
    told = {"algorithm": ALGORITHM, "publicKey": decision_receipts.public_key()}
    return reply(told)


@never_cache
@login_required
@require_GET
def receipt(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Hand the receipt out as a file."""
    try:
        who = page_caller(request)
        given = archived.receipt_for(who, pk) or decision_receipts.receipt_of(who, pk)
    except (NotAnswered, RecordAltered) as refusal:
        messages.error(request, str(refusal))
        return redirect("gates:gate", pk=pk)
    digest, seq = given["question"]["digest"], given["answers"][-1]["seq"]
    told = HttpResponse(f"{pretty(given)}\n", content_type="application/json")
    name = f"receipt-{digest[:8]}-{seq}.json"
    told["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    told["X-Content-Type-Options"] = "nosniff"
    return told
