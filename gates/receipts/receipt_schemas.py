"""Shapes of the API about receipts."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from gates.answers.answer_schemas import Override
from gates.schemas import DEFINITION, EXAMPLE_DIGEST
from runs.schemas import EXAMPLE_RUN, EXAMPLE_TIME, Json, Shape

_HASH: Final = "0" * 64
_EVENT: Final[dict[str, Any]] = {
    "seq": 21,
    "kind": "callback-submitted",
    "ts": 1767225600000,
    "path": [],
    "actor": "user:7",
    "surface": "browser",
    "key": "",
    "fields": {},
}


class ReceiptedQuestion(Shape):
    """The question; its digest is the SHA-256 of its canonical text."""

    request_id: str
    gate_id: str
    gate_version: int
    digest: str
    decision_text: str
    response_schema: dict[str, Json]
    input: Json
    canonical_text: str | None = Field(description="Left out where parts of the input are masked.")
    masked: list[str]


class ReceiptedAnswer(Shape):
    """One answer, and the event of the record that holds it."""

    response: dict[str, Json]
    actor: str
    name: str
    at: str
    ts: int
    surface: str
    seq: int
    previous: str = Field(description="The hash of the event before it.")
    event: dict[str, Json]
    hash: str = Field(description="SHA-256 of the canonical text of `previous` and `event`.")


class ReceiptedRun(Shape):
    """The run whose record holds the answer."""

    id: str
    workflow: str
    stream: str


class ReceiptedRecord(Shape):
    """Where the record ended when the receipt was given, and whether its end was sealed."""

    last_seq: int
    head: str
    sealed: bool


class ReceiptSignature(Shape):
    """Over the canonical text of everything else in the receipt."""

    algorithm: str
    public_key: str
    value: str


class ReceiptKey(Shape):
    """The key that receipts are checked with."""

    model_config = ConfigDict(
        title="ReceiptKey",
        json_schema_extra={"examples": [{"algorithm": "Ed25519", "publicKey": "base64"}]},
    )

    algorithm: str
    public_key: str


class ReceiptFile(Shape):
    """The receipt of an answered question."""

    model_config = ConfigDict(
        title="ReceiptFile",
        json_schema_extra={
            "examples": [
                {
                    "format": "obversa-receipt/1",
                    "issuer": "https://obversa.example.com",
                    "issuedAt": EXAMPLE_TIME,
                    "run": {"id": EXAMPLE_RUN, "workflow": "release", "stream": ""},
                    "question": {
                        **{name: DEFINITION[name] for name in DEFINITION if name != "presentation"},
                        "requestId": f"release-approval#1#{EXAMPLE_DIGEST}",
                        "digest": EXAMPLE_DIGEST,
                        "canonicalText": "{}",
                        "masked": [],
                    },
                    "how": "answered",
                    "override": None,
                    "answers": [
                        {
                            "response": {"approved": True},
                            "actor": "user:7",
                            "name": "Ada Byron",
                            "at": EXAMPLE_TIME,
                            "ts": 1767225600000,
                            "surface": "browser",
                            "seq": 21,
                            "previous": _HASH,
                            "event": _EVENT,
                            "hash": _HASH,
                        }
                    ],
                    "record": {"lastSeq": 30, "head": _HASH, "sealed": True},
                    "signature": {"algorithm": "Ed25519", "publicKey": "", "value": ""},
                }
            ]
        },
    )

    format: str
    issuer: str
    issued_at: str
    run: ReceiptedRun
    question: ReceiptedQuestion
    how: Literal["answered", "overridden"]
    override: Override | None
    answers: list[ReceiptedAnswer]
    record: ReceiptedRecord
    signature: ReceiptSignature
