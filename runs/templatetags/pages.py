"""Filters that every page uses: times in words, status shapes, JSON as a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django import template
from django.utils import timezone

from runs.kernel.jsonable import canonical_json
from runs.plaintext import visible as visible_text

if TYPE_CHECKING:
    from runs.kernel.jsonable import JSONValue

register = template.Library()

LONG_TEXT = 240
DEEPEST = 40

SHAPES = {
    "waiting": "hand",
    "waiting_for_approval": "hand",
    "waiting_for_question": "hand",
    "waiting_for_gate": "hand",
    "pending": "hand",
    "claimed": "hand",
    "paused": "pause",
    "running": "dot",
    "retry_pending": "again",
    "passed": "tick",
    "answered": "tick",
    "failed": "cross",
    "refused": "cross",
    "exhausted": "cross",
    "sent_back": "back",
    "queued": "ring",
    "idle": "ring",
}


@register.filter
def shape(status: str) -> str:
    """Name the shape drawn beside a status; whatever is over or never began is a dash."""
    return SHAPES.get(status, "dash")


@register.filter
def span_words(span: timedelta | None) -> str:
    """Say a length of time in one number and one unit."""
    seconds = int(span.total_seconds()) if span else 0
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 86400} d"


@register.filter
def age(at: datetime | None) -> str:
    """Say how long ago a time was."""
    if at is None:
        return ""
    past = timezone.now() - at
    return "now" if past < timedelta(seconds=10) else span_words(past)


@register.filter
def time_left(at: datetime | None) -> str:
    """Say how far away a deadline is, or how long it has been missed."""
    if at is None:
        return ""
    left = at - timezone.now()
    return f"{span_words(left)} left" if left >= timedelta(0) else f"{span_words(-left)} over"


@register.filter
def json_kind(value: JSONValue) -> str:
    """Name the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "long" if len(value) > LONG_TEXT or "\n" in value else "string"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, Sequence):
        return "array"
    return "number"


@register.filter
def json_pairs(value: JSONValue) -> list[tuple[str, JSONValue]]:
    """List the members of an object or array; a key named "items" stays a key."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [(str(index), item) for index, item in enumerate(value)]
    return []


@register.filter
def too_deep(path: str) -> bool:
    """Tell whether a tree has gone deeper than anybody folds it open."""
    return bool(path) and path.count("/") >= DEEPEST


@register.filter
def json_text(value: JSONValue) -> str:
    """Write a value as one line of JSON, cut where it gets long."""
    text = visible_text(canonical_json(value))
    return text if len(text) <= 2000 else f"{text[:2000]}…"


@register.filter
def visible(value: object) -> str:
    """Spell out the hidden marks of a stranger's text."""
    return visible_text(str(value))


@register.filter
def json_pointer(path: str, key: str) -> str:
    """Extend a JSON pointer by one key."""
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
