"""The receipt of an answered question: a file that can be checked without this installation.

It holds the question, each answer with the event that recorded it, and the hashes that place the
event in its record, signed by this installation (docs/receipts.md). `obversa-record
--verify-receipt` checks it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.utils import timezone

from gates import access
from gates.errors import GateError
from gates.evidence.masking import masked, pointers_for, pointers_of
from gates.models import Request, Response
from gates.principals import Principal, actor_labels
from runs import wire
from runs.archive import verifying
from runs.kernel import chain
from runs.kernel.events import Event
from runs.kernel.jsonable import canonical_json, thaw
from runs.models import Event as EventRow
from runs.models import Run
from runs.report.verifying import ALGORITHM, RECEIPT
from runs.turns import folding
from runs.turns.seals import is_seal

_DEFINITION: Final = ("gateId", "gateVersion", "decisionText", "responseSchema", "input")


class NotAnswered(GateError):
    """The question has no answer, so there is no receipt of one."""

    code = "not-answered"


class RecordAltered(GateError):
    """The record is not the one that was written."""

    code = "record-altered"


def receipt_of(who: Principal, pk: UUID) -> dict[str, Any]:
    """The receipt for somebody who may see the question; raises NotAnswered or RecordAltered."""
    row = access.find(who, pk)
    answers = list(Response.objects.filter(request=row).order_by("seq"))
    if row.status != Request.Status.ANSWERED or not answers:
        raise NotAnswered("This question has no answer, so there is no receipt of one.")
    run = Run.objects.get(pk=row.run_id)
    places = _places(run, {answer.seq for answer in answers})
    return _receipt(run, row, answers, places, pointers_for(who, row))


def receipts_of(run: Run, rows: Iterable[Request]) -> dict[UUID, tuple[Any, Any]]:
    """The receipts of all answered questions of a run, by key.

    Each as those read it who may read sensitive values, and masked where it has any.
    """
    answers: dict[UUID, list[Response]] = defaultdict(list)
    answered = [row for row in rows if row.status == Request.Status.ANSWERED]
    for answer in Response.objects.filter(request__in=answered).order_by("seq"):
        answers[answer.request_id].append(answer)
    wanted = {answer.seq for some in answers.values() for answer in some}
    places = _places(run, wanted) if wanted else {}
    made = {}
    for row in answered:
        if some := answers[row.pk]:
            pointers = pointers_of(row.presentation)
            masked_one = _receipt(run, row, some, places, pointers) if pointers else None
            made[row.pk] = (_receipt(run, row, some, places, ()), masked_one)
    return made


def _receipt(
    run: Run,
    row: Request,
    answers: list[Response],
    places: Mapping[int, tuple[str, Event, str]],
    pointers: tuple[str, ...],
) -> dict[str, Any]:
    labels = actor_labels(answer.actor for answer in answers)
    given: dict[str, Any] = {
        "format": RECEIPT,
        "issuer": settings.OBVERSA_BASE_URL,
        "issuedAt": wire.time(timezone.now()),
        "run": {"id": str(run.pk), "workflow": run.workflow, "stream": run.stream},
        "question": _question(row, pointers),
        "how": row.how,
        "override": row.routing.get("override"),
        "answers": [
            {
                "response": answer.response,
                "actor": answer.actor,
                "name": labels[answer.actor],
                "at": wire.time(answer.at),
                "ts": places[answer.seq][1].ts,
                "surface": answer.surface,
                "seq": answer.seq,
                "previous": places[answer.seq][0],
                "event": thaw(chain.event_json(places[answer.seq][1])),
                "hash": places[answer.seq][2],
            }
            for answer in answers
        ],
        "record": {
            "lastSeq": run.last_seq,
            "head": run.head,
            "sealed": is_seal(run.seal, run.pk, run.last_seq, run.head),
        },
    }
    return {**given, "signature": _signature(given)}


def public_key() -> str:
    """The key that checks our signatures, in base64; it changes with the secret key."""
    return base64.b64encode(_key().public_key().public_bytes_raw()).decode()


def _places(run: Run, wanted: set[int]) -> dict[int, tuple[str, Event, str]]:
    """Each wanted event between the hash before it and its own; the record has to be whole."""
    found = verifying.follow(run)
    if found.seq is not None or (found.ok and found.head != run.head):
        raise RecordAltered(f"No receipt is given of a record that was altered. {found.text}")
    places, head = {}, chain.START
    for event, _ in verifying.kept_events(run, max(wanted)):
        before, head = head, chain.next_hash(head, event)
        if event.seq in wanted:
            places[event.seq] = (before, event, head)
    return places


def _question(row: Request, pointers: tuple[str, ...]) -> dict[str, Any]:
    """The question as the record has it; without its canonical text where parts are masked."""
    asked = folding.to_event(EventRow.objects.get(run=row.run_id, seq=row.asked_seq))
    request: Mapping[str, Any] = asked.fields["request"]
    definition = {name: thaw(request[name]) for name in _DEFINITION}
    return {
        **definition,
        "input": masked(definition["input"], pointers),
        "requestId": request["requestId"],
        "digest": request["digest"],
        "canonicalText": None if pointers else canonical_json(definition),
        "masked": list(pointers),
    }


def _signature(value: Mapping[str, Any]) -> dict[str, str]:
    signed = _key().sign(canonical_json(value).encode())
    return {
        "algorithm": ALGORITHM,
        "publicKey": public_key(),
        "value": base64.b64encode(signed).decode(),
    }


def _key() -> Ed25519PrivateKey:
    """Made from the secret key, so that every process signs alike and nothing more is stored."""
    seed = hmac.new(settings.SECRET_KEY.encode(), b"obversa receipts v1", hashlib.sha256).digest()
    return Ed25519PrivateKey.from_private_bytes(seed)
