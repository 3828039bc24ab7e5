"""Webhooks: one signed JSON message per event, the same `id` however often it is tried."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from gates import signing
from gates.lists.rows import question_line
from gates.models import Channel, Delivery, Request
from gates.notify import kinds, outgoing
from gates.notify.errors import NotSent
from gates.notify.message import Message, verdict
from gates.principals import actor_label
from runs import wire
from runs.models import Run
from runs.pages import words

AGENT: Final = "Obversa-Webhook/1"


def send(channel: Channel, delivery: Delivery, message: Message) -> None:
    """Post the event; raises NotSent unless the receiver says 2xx."""
    body = json.dumps(payload(delivery, message), ensure_ascii=False).encode()
    try:
        signed = signing.signed_headers(channel.secret, body, int(time.time()))
    except ValueError:
        raise NotSent("The channel has no secret to sign with.", retryable=False) from None
    outgoing.post(
        channel.address,
        body,
        {**signed, "User-Agent": AGENT, "Obversa-Event": delivery.kind},
    )


def payload(delivery: Delivery, message: Message) -> dict[str, Any]:
    """The documented shape (docs/notifications.md). Neither inputs nor answers are in it."""
    return {
        "id": str(delivery.uid),
        "event": delivery.kind,
        "ts": wire.time(delivery.created_at),
        "seq": delivery.seq,
        "text": message.text(title=True),
        "title": message.title,
        "url": message.url,
        "fingerprint": message.fingerprint or None,
        "request": None if delivery.request is None else _request(delivery.kind, delivery.request),
        "run": None if delivery.run is None else _run(delivery.run),
    }


def _request(kind: str, row: Request) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": str(row.pk),
        "requestId": row.request_id,
        "kind": row.kind,
        "status": row.status,
        "gateId": row.gate_id,
        "gateVersion": row.gate_version,
        "digest": row.digest,
        "question": question_line(row.decision_text),
        "stepPath": row.step_path,
        "askedBy": row.asked_by,
        "priority": row.priority,
        "dueAt": wire.time(row.due_at),
        "expiresAt": wire.time(row.expires_at),
        "createdAt": wire.time(row.created_at),
        "url": wire.address(row.get_absolute_url()),
    }
    if kind == kinds.ANSWERED:
        told |= {
            "answeredAt": wire.time(row.answered_at),
            "answeredBy": row.answered_by,
            "answeredByName": actor_label(row.answered_by),
            "verdict": verdict(row),
        }
    elif kind in kinds.CLOSING:
        told["closedReason"] = row.closed_reason or None
    return told


def _run(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.pk),
        "workflow": run.workflow,
        "title": words.title(run),
        "status": run.status,
        "stream": run.stream,
        "startedBy": run.started_by,
        "url": wire.address(run.get_absolute_url()),
    }
