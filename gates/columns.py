"""How facts of the record fit into columns that are narrower than JSON."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Final

from gates.models import Request
from runs.kernel.interactions import PURPOSE as INTERACTION
from runs.kernel.questions import PURPOSE as QUESTION

END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)
_MAX_PRIORITY: Final = 1_000
_MAX_ID: Final = 600
_MAX_GATE_ID: Final = 500


def text(value: object, limit: int | None = None) -> str:
    """A text for a column: PostgreSQL stores no U+0000, and the record keeps the true one."""
    shown = str(value).replace("\0", "\ufffd")
    return shown if limit is None else shown[:limit]


def request_id(value: object) -> str:
    """A request id for its column; a very long one keeps its digest, so it stays unique."""
    shown = text(value)
    return shown if len(shown) <= _MAX_ID else f"{shown[:_MAX_GATE_ID]}…{shown[-66:]}"


def true_id(row: Request, known: Collection[str]) -> str:
    """The row's request id as the record has it."""
    for name in (row.request_id, *known):
        if request_id(name) == row.request_id and name in known:
            return name
    return row.request_id


def gate_id(value: object) -> str:
    """A gate id for its column."""
    return text(value, _MAX_GATE_ID)


def time_of(value: Any) -> datetime | None:
    """A time that an author wrote, or None when it is none."""
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def priority(value: Any) -> int:
    """A priority within its bounds; what is no whole number counts as none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(-_MAX_PRIORITY, min(_MAX_PRIORITY, value))


def kind(routing: dict[str, Any]) -> str:
    """What sort of question it is: said by its asker, or told by its purpose."""
    named = routing.get("kind")
    if named in Request.Kind.values:
        return str(named)
    is_question = routing.get("purpose") in ("reconcile", QUESTION, INTERACTION)
    return str(Request.Kind.QUESTION if is_question else Request.Kind.GATE)
