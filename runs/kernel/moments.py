"""A moment as a row has it and as an event has it: exact both ways, where a float would round."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def moment(ms: int) -> datetime:
    """The time, in UTC, that lies so many milliseconds after the epoch."""
    return _EPOCH + ms * _MILLISECOND


def milliseconds(at: datetime) -> int:
    """Whole milliseconds since the epoch; what is left of one is dropped, as pages drop it."""
    return (at - _EPOCH) // _MILLISECOND
