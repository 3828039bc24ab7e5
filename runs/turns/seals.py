"""The seal of a record's head: whoever has only the database cannot make one (docs/receipts.md)."""

from __future__ import annotations

import hashlib
import hmac
from uuid import UUID

from django.conf import settings

from runs.kernel import chain
from runs.models import Event as EventRow
from runs.turns import folding


def seal_of(run_id: object, seq: int, head: str) -> str:
    """The seal of a run whose last event is `seq` and has the hash `head`."""
    return _sealed(settings.SECRET_KEY, run_id, seq, head)


def is_seal(given: str, run_id: object, seq: int, head: str) -> bool:
    """Whether this is the seal that this installation made for that head."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(
        hmac.compare_digest(given.encode(), _sealed(key, run_id, seq, head).encode())
        for key in keys
    )


def _sealed(key: str, run_id: object, seq: int, head: str) -> str:
    text = "\0".join(("obversa record", str(run_id), str(seq), head))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def head_of_before(run_id: UUID, last_seq: int) -> str:
    """The hash that a record of before there were hashes would have by now."""
    rows = EventRow.objects.filter(run_id=run_id, seq__lte=last_seq).order_by("seq")
    head = chain.START
    for row in rows.iterator():
        head = chain.next_hash(head, folding.to_event(row))
    return head
