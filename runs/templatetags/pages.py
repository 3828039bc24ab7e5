"""Filters that every page uses: times in words, status shapes, strangers' text."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils import timezone

from runs.plaintext import visible as visible_text

register = template.Library()

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
def ago(at: datetime | None) -> str:
    """Say how long ago a time was, as the end of a sentence."""
    if at is None:
        return ""
    past = timezone.now() - at
    return "just now" if past < timedelta(seconds=10) else f"{span_words(past)} ago"


@register.filter
def since(at: datetime | None) -> str:
    """Say how long something has lasted."""
    return "" if at is None else span_words(timezone.now() - at)


@register.filter
def time_until(at: datetime | None) -> str:
    """Say when something comes, counted from now."""
    if at is None:
        return ""
    left = at - timezone.now()
    return f"in {span_words(left)}" if left > timedelta(0) else "now"


@register.filter
def time_left(at: datetime | None) -> str:
    """Say how far away a deadline is, or how long it has been missed."""
    if at is None:
        return ""
    left = at - timezone.now()
    return f"{span_words(left)} left" if left >= timedelta(0) else f"{span_words(-left)} over"


@register.filter
def visible(value: object) -> str:
    """Spell out the hidden marks of a stranger's text."""
    return visible_text(str(value))


@register.filter
def short_digest(digest: str) -> str:
    """The first characters of a digest, enough to tell two apart."""
    return digest.removeprefix("sha256:")[:12]
