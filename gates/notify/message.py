"""What a message says: a title, two lines of context, one link that only shows, a fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.urls import reverse

from gates.lists.rows import question_line
from gates.models import Delivery, Request, Response
from gates.notify import kinds
from gates.principals import actor_label
from runs import wire
from runs.models import Run
from runs.pages import words
from runs.plaintext import visible

LINE: Final = 160
LISTED: Final = 20
_BEFORE: Final = {
    kinds.REMINDED: "Reminder: ",
    kinds.OVERDUE: "Overdue: ",
    kinds.ESCALATED: "Now for you: ",
    kinds.ASSIGNED: "Given to you: ",
    kinds.ANSWERED: "Answered: ",
    kinds.EXPIRED: "Expired: ",
    kinds.CLOSED: "Closed: ",
}
_CLOSED_WORDS: Final = {
    Request.Status.SUPERSEDED: "Another question took its place",
    Request.Status.CANCELLED: "It was withdrawn, or its run was cancelled",
    Request.Status.EXPIRED: "Nobody answered in time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as every channel says it. `lines` are context, `listed` a digest's questions."""

    title: str
    lines: tuple[str, ...]
    url: str
    fingerprint: str = ""
    listed: tuple[str, ...] = ()

    def text(self, limit: int | None = None, *, title: bool = False) -> str:
        """The message as plain text of at most `limit` characters; the link is always whole."""
        parts = [*([self.title] if title else []), *self.listed, *self.lines]
        if self.fingerprint:
            parts.append(f"Fingerprint {self.fingerprint}")
        link = f"Open: {self.url}"
        if limit is None:
            return "\n".join([*parts, link])
        return _fitted(parts, link, limit)


def _fitted(parts: Sequence[str], link: str, limit: int) -> str:
    """As much of the parts as fits before the link; the link alone says where to read the rest."""
    room = limit - len(link) - 1
    kept: list[str] = []
    for part in parts:
        if room < min(len(part), 12):
            break
        shown = part if len(part) <= room else part[: room - 1] + "…"
        kept.append(shown)
        room -= len(shown) + 1
    return "\n".join([*kept, link])


def message_for(delivery: Delivery, zone: ZoneInfo) -> Message:
    """The message of one delivery, with times in the reader's zone."""
    if delivery.kind == kinds.TEST:
        return Message(
            title="Obversa reaches this channel",
            lines=("Somebody asked for this test in the settings.", "Nothing waits for you here."),
            url=wire.address(reverse("gates:settings")),
        )
    if delivery.request is not None:
        return _of_request(delivery.kind, delivery.request, zone)
    assert delivery.run is not None
    return _of_run(delivery.run)


def digest_of(deliveries: Sequence[Delivery]) -> Message:
    """Several messages as one: the questions by name, and one link to the list of them."""
    rows = {d.request.pk: d for d in deliveries if d.request is not None and _asks(d)}
    others = [d for d in deliveries if not (d.request is not None and _asks(d))]
    shown = [*rows.values(), *others]
    listed = [_item(one) for one in shown[:LISTED]]
    if len(shown) > LISTED:
        listed.append(f"and {len(shown) - LISTED} more")
    waiting = len(rows)
    if waiting:
        title = f"{waiting} question{'s wait' if waiting > 1 else ' waits'} for an answer"
    else:
        title = f"{len(shown)} pieces of news"
    news = len(others)
    lines = (f"and {news} piece{'s' if news > 1 else ''} of news",) if waiting and news else ()
    place = "gates:inbox" if waiting else "runs:run-list"
    return Message(title=title, lines=lines, url=wire.address(reverse(place)), listed=tuple(listed))


def _asks(delivery: Delivery) -> bool:
    return delivery.kind in kinds.ASKING


def _item(delivery: Delivery) -> str:
    if delivery.request is None:
        assert delivery.run is not None
        return f"- {_of_run(delivery.run).title}"
    before = _BEFORE.get(delivery.kind, "")
    row = delivery.request
    return f"- {before}{_cut(question_line(row.decision_text))} ({row.fingerprint})"


def _of_request(kind: str, row: Request, zone: ZoneInfo) -> Message:
    return Message(
        title=_BEFORE.get(kind, "") + question_line(row.decision_text),
        lines=(_place(row), _state(kind, row, zone)),
        url=wire.address(row.get_absolute_url()),
        fingerprint=row.fingerprint,
    )


def _place(row: Request) -> str:
    step = row.step_path[-1] if row.step_path else row.gate_id
    return _cut(f"{words.title(row.run)}{words.BETWEEN}{visible(str(step))}, run {row.run.short}")


def _state(kind: str, row: Request, zone: ZoneInfo) -> str:
    if kind == kinds.ANSWERED:
        return _cut(f"{verdict(row).capitalize()} by {actor_label(row.answered_by)}")
    if kind in kinds.CLOSING:
        return _CLOSED_WORDS.get(Request.Status(row.status), "It was closed")
    asked = f"Asked by {actor_label(row.asked_by)}"
    ends = row.due_at or row.expires_at
    if ends is None:
        return _cut(asked)
    what = "due" if row.due_at is not None else "counts until"
    return _cut(f"{asked}, {what} {_moment(ends, zone)}")


def verdict(row: Request) -> str:
    """A yes or a no in a word; what else was answered is for whoever opens the page."""
    given: Any = Response.objects.filter(request=row).values_list("response", flat=True).first()
    approved = given.get("approved") if isinstance(given, dict) else None
    return (
        {True: "approved", False: "refused"}.get(approved, "answered")
        if isinstance(approved, bool)
        else "answered"
    )


def _of_run(run: Run) -> Message:
    about = words.about(run.params)
    starter = f"Started by {actor_label(run.started_by)}"
    state = words.RUN_WORDS[run.status]
    return Message(
        title=_cut(f"{words.title(run)} {'is ' if state == 'paused' else ''}{state}"),
        lines=(_cut(f"Run {run.short}{f': {about}' if about else ''}"), _cut(starter)),
        url=wire.address(run.get_absolute_url()),
    )


def _moment(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M} {zone.key}"


def _cut(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= LINE else one[: LINE - 1] + "…"


def host() -> str:
    """The name of this installation in the ids of mail."""
    from urllib.parse import urlsplit

    return urlsplit(settings.OBVERSA_BASE_URL).hostname or "localhost"
