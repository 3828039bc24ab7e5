"""Checking a record or a receipt that left the service, with nothing but its own file.

A receipt is JSON: the question with its canonical text and digest, each answer with the event that
recorded it, the hash of that event and the one before it, and the signature of whoever gave it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from runs.kernel import chain
from runs.kernel.chain import Verdict
from runs.kernel.events import Event
from runs.kernel.jsonable import JsonValueError, canonical_json, json_equal, parse_json

RECEIPT: Final = "obversa-receipt/1"
ALGORITHM: Final = "Ed25519"
_DEFINITION: Final = ("gateId", "gateVersion", "decisionText", "responseSchema", "input")


class ReceiptRefused(ValueError):
    """The receipt does not hold what it says."""


def follow_export(
    header: Mapping[str, Any], events: Sequence[Event | None], named: str = "The file"
) -> Verdict:
    """Compare the events of an export with the hashes in its header; None is a line that is none.

    Exports of before there were hashes have none, which is said and is no success.
    """
    hashes = header.get("hashes")
    if not isinstance(hashes, list | tuple) or not all(isinstance(one, str) for one in hashes):
        return Verdict(ok=False, text=f"{named} has no hashes: there is nothing to compare with.")
    found = chain.follow(_kept(events, hashes))
    if not found.ok:
        return found
    seq = found.count + 1
    if found.count < max(len(events), len(hashes)):
        what = "cannot be read" if seq <= len(events) else "is missing"
        if seq > len(hashes):
            what = "was put after the end of the record"
        return Verdict(ok=False, text=f"Event {seq} {what}.", count=found.count, seq=seq)
    if header.get("head") != found.head:
        text = "Every event fits its hash, and the header names another end of the chain."
        return Verdict(ok=False, text=text, count=found.count, head=found.head)
    return found


def _kept(events: Sequence[Event | None], hashes: Sequence[str]) -> Iterator[tuple[Event, str]]:
    """The events up to the first line that is none, with their hashes."""
    for event, own in zip(events, hashes, strict=False):
        if event is None:
            return
        yield event, own


def verify_receipt(
    receipt: object, *, hashes: Mapping[int, str] | None = None, key: str = ""
) -> list[str]:
    """What the receipt shows, line by line; raises ReceiptRefused for the first thing wrong in it.

    `hashes` are those of the record it belongs to, by number, computed anew from that record.
    `key` is the public key that the installation is known by, as it shows it.
    """
    given = _object(receipt, "The receipt")
    if given.get("format") != RECEIPT:
        raise ReceiptRefused(f"It has format {given.get('format')!r:.40}, not {RECEIPT}.")
    told = [*_question(given), *_answers(given), *_overridden(given)]
    told.append(_signature(given, key))
    if hashes is None:
        told.append("Without its record: whether the record still says so was not looked at.")
    else:
        told += _in_record(given, hashes)
    return told


def _question(receipt: Mapping[str, Any]) -> list[str]:
    question = _object(receipt.get("question"), "Its question")
    digest, text = question.get("digest"), question.get("canonicalText")
    wanted = f"{question.get('gateId')}#{question.get('gateVersion')}#{digest}"
    if question.get("requestId") != wanted:
        raise ReceiptRefused("The question's id is not made of its gate, version and digest.")
    if text is None and question.get("masked"):
        return [f"The question {wanted}; parts of its text are masked, so only its digest is here."]
    if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != digest:
        raise ReceiptRefused("The question's canonical text does not give its digest.")
    try:
        same = json_equal(parse_json(text), {name: question.get(name) for name in _DEFINITION})
    except JsonValueError:
        same = False
    if not same:
        raise ReceiptRefused("The question is not the one of its canonical text.")
    return [f"The question gives its digest {digest}."]


def _answers(receipt: Mapping[str, Any]) -> list[str]:
    answers = receipt.get("answers")
    if not isinstance(answers, list | tuple) or not answers:
        raise ReceiptRefused("It holds no answer.")
    return [_answer(receipt["question"], _object(one, "An answer")) for one in answers]


def _overridden(receipt: Mapping[str, Any]) -> list[str]:
    """An answer over the heads of those who were asked is told as that."""
    told = receipt.get("override")
    if not isinstance(told, Mapping):
        return []
    return [f"It broke the glass: {told.get('by')} was not asked, and gave the reason."]


def _answer(question: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    try:
        event = chain.event_from_json(answer.get("event"))
        own = chain.next_hash(str(answer.get("previous")), event)
    except (ValueError, TypeError) as error:
        raise ReceiptRefused(f"An answer has no event: {error}") from error
    where = f"event {event.seq}"
    if own != answer.get("hash"):
        raise ReceiptRefused(f"The answer of {where} does not give its hash.")
    fields = event.fields
    if fields.get("requestId") != question["requestId"] or fields.get(
        "requestDigest", question["digest"]
    ) != question.get("digest"):
        raise ReceiptRefused(f"The answer of {where} is for another question.")
    if not json_equal(fields.get("response"), answer.get("response")):
        raise ReceiptRefused(f"The answer is not the one of {where}.")
    is_code = event.actor == "system" and "routerId" in fields
    # Of several people each is named, whichever of their keys they used.
    by = fields["routerId"] if is_code else fields.get("person") or event.actor
    said = (answer.get("actor"), answer.get("surface"), answer.get("seq"))
    if said != (by, event.surface, event.seq) or answer.get("ts") != event.ts:
        raise ReceiptRefused(f"Who answered, when or where is not what {where} says.")
    return f"The answer by {by} gives the hash of {where}: {own}."


def _signature(receipt: Mapping[str, Any], key: str) -> str:
    signature = _object(receipt.get("signature"), "Its signature")
    public = str(signature.get("publicKey", ""))
    if signature.get("algorithm") != ALGORITHM:
        raise ReceiptRefused(f"It is not signed by {ALGORITHM}.")
    if key and key != public:
        raise ReceiptRefused(f"It is signed by the key {public:.64}, not by {key:.64}.")
    unsigned = {name: value for name, value in receipt.items() if name != "signature"}
    if not is_signed(unsigned, public, str(signature.get("value", ""))):
        raise ReceiptRefused("Its signature does not fit: it was changed after it was given.")
    if key:
        return f"It is signed by the key {key}."
    return f"It is signed by the key {public}; compare it with the one the installation shows."


def is_signed(value: object, public_key: str, signature: str) -> bool:
    """Whether the owner of this public key signed the canonical text of the value."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        known = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        known.verify(base64.b64decode(signature, validate=True), canonical_json(value).encode())
    except (ValueError, binascii.Error, InvalidSignature):
        return False
    return True


def _in_record(receipt: Mapping[str, Any], hashes: Mapping[int, str]) -> list[str]:
    told = []
    for answer in receipt["answers"]:
        seq = answer["seq"]
        if seq not in hashes:
            raise ReceiptRefused(f"The record has no event {seq}.")
        if hashes[seq] != answer["hash"]:
            raise ReceiptRefused(
                f"The record was altered: up to event {seq} it is not the one of this receipt."
            )
        told.append(f"The record is, up to event {seq}, the one of this receipt.")
    return told


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ReceiptRefused(f"{name} is no JSON object.")
    return value
