"""The frames of the inbox socket: the count, what is new, rows whose claim changed."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.utils import timezone

from gates import queries
from gates.lists.inbox_page import count_text
from gates.lists.rows import InboxRow, question_line, rows_for
from gates.models import Request
from gates.pages.timeline import TimelineEvent, timeline
from runs.kernel.events import EventKind
from runs.people.principals import Principal

WATCHED: Final = 100
# More changes than this at once are rows only; whoever has one of them open reads the page anew.
TOLD: Final = 10
# A change is dated when its turn begins and is seen when that turn commits.
LATE: Final = timedelta(seconds=10)


class SignedOut(Exception):
    """The person behind the socket may not look any more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How a page last heard of a question."""

    mark: str
    at: datetime


class InboxNews:
    """What one page knows of the inbox; each frame says only what differs from it."""

    def __init__(self, user_pk: int, since: int = 0) -> None:
        """`since` is when the page was made, in seconds; what was asked after it is news."""
        self._user_pk = user_pk
        self._since = datetime.fromtimestamp(since, UTC) if since else None
        self._known: dict[UUID, Seen] | None = None
        self._looked = timezone.now()
        self._told: dict[UUID, str] = {}
        self._newest: datetime | None = None
        self._counts: dict[str, int] = {}
        self._open_here: list[Request] = []

    def frame(self) -> str:
        """Read the inbox anew and write the difference; empty when there is none.

        A reading that fails tells nothing, so the next one tells what this one would have.
        """
        before = dict(vars(self))
        try:
            return self._difference()
        except Exception:
            vars(self).update(before)
            raise

    def _difference(self) -> str:
        user = User.objects.filter(pk=self._user_pk, is_active=True).first()
        if user is None:
            raise SignedOut(str(self._user_pk))
        who = Principal.for_user(user)
        counts = queries.inbox_counts(who)
        out = []
        if counts != self._counts:
            self._counts = counts
            out += self._counted()
        open_here = self._open_here = queries.open_for(who, WATCHED)
        elsewhere = queries.open_elsewhere(who, WATCHED)
        shown = {row.pk: _seen(row) for row in [*elsewhere, *open_here]}
        watched = self._watched(who)
        known, self._known = self._known, shown
        newest, self._newest = self._newest, max((one.at for one in shown.values()), default=None)
        if known is None:
            return "".join(out + self._asked_since(self._since))
        # With more open questions than are watched, an old one moves up when another is answered.
        is_whole = len(known) < WATCHED
        out += [
            _news(row)
            for row in open_here
            if row.pk not in known and (is_whole or newest is None or row.created_at > newest)
        ]
        changed = {pk for pk in known.keys() | shown.keys() if _mark(known, pk) != _mark(shown, pk)}
        watched -= known.keys() | shown.keys()
        return "".join(out + self._changed(who, changed | watched, known.keys() | watched))

    def opening(self, since: int) -> str:
        """What a page lacks that was made at `since`, by what the last frame read."""
        made = datetime.fromtimestamp(since, UTC) if since else None
        return "".join(self._counted() + self._asked_since(made))

    def _counted(self) -> list[str]:
        total = {"inbox_count": self._counts["unclaimed"] + self._counts["mine"]}
        html = render_to_string("shared/_count.html", total)
        out = [_partial("#inbox-count", "outerHTML", html)]
        for tab, number in self._counts.items():
            count = {"key": tab, "count": count_text(number)}
            html = render_to_string("shared/_tab_count.html", count)
            out.append(_partial(f"#tab-{tab}-count", "outerHTML", html))
        return out

    def _asked_since(self, since: datetime | None) -> list[str]:
        return [_news(row) for row in self._open_here if since and row.created_at >= since]

    def _watched(self, who: Principal) -> set[UUID]:
        """What changed since the last look of everything this person may see, and was not told.

        A page of a question may be open before somebody who cannot answer it.
        """
        rows = queries.changed_since(who, self._looked - LATE, WATCHED)
        told, self._told = self._told, {row.pk: _seen(row).mark for row in rows}
        self._looked = max([self._looked, *(row.changed_at for row in rows)])
        return {
            row.pk
            for row in rows
            if told.get(row.pk) != self._told[row.pk] and row.changed_at != row.created_at
        }

    def _changed(self, who: Principal, keys: set[UUID], known: Set[UUID]) -> list[str]:
        """Rows that were claimed, released or answered, and what their open pages should say."""
        found = list(Request.objects.select_related("run").filter(pk__in=keys)) if keys else []
        out = []
        for request, row in zip(found, rows_for(who, found), strict=True):
            html = render_to_string("gates/_row.html", {"row": row})
            out.append(_partial(f"#row-{row.id}", "outerHTML", html))
            chip = render_to_string("gates/_claim_chip.html", {"row": row})
            out.append(_partial(f"#queue-{row.id} > .claim", "outerHTML", chip))
            if len(found) > TOLD or row.id not in known:
                continue
            events = timeline(request)
            if not (events and events[-1].actor == who.actor):
                out.append(_banner(row, events[-1] if events else None))
            gate = {"pk": row.id}
            lines = "".join(
                render_to_string("gates/_timeline_event.html", {"gate": gate, "event": event})
                for event in events
            )
            out.append(_partial(f"#gate-{row.id}-timeline", "innerHTML", lines))
        return out


def _banner(row: InboxRow, last: TimelineEvent | None) -> str:
    """What an open page of the question should say of what somebody else did."""
    kind, text = _BANNERS[row.claim_state]
    who = row.holder_label if row.claim_state == "other" else row.answered_by
    if last is not None and last.kind == EventKind.FORCE_RELEASED and row.claim_state == "free":
        who = f"{last.actor_label} took the claim back: {last.note}"
        text = "{who}"
    if last is not None and last.kind == EventKind.RESPONDED and row.quorum:
        who, text = last.actor_label, f"{{who}} answered: {row.quorum}."
    banner = {"kind": kind, "text": text.replace("{who}", who), "url": row.url, "link": "Show"}
    html = render_to_string("shared/_banner.html", {"banner": banner})
    return _partial(f"#gate-{row.id}-banner", "innerHTML", html)


_BANNERS: Final = {
    "free": ("changed", "This question is free again."),
    "you": ("changed", "You hold this question."),
    "other": ("claimed", "{who} claimed this question."),
    "answered": ("answered", "{who} answered this question while you were reading."),
    "closed": ("changed", "This question was closed while you were reading."),
}


def _seen(row: Request) -> Seen:
    # Of several people each answer is news.
    shared = f" {row.changed_at.timestamp()}" if row.needed > 1 else ""
    return Seen(f"{row.status} {row.holder} {row.claim_seq}{shared}", row.created_at)


def _mark(seen: dict[UUID, Seen], pk: UUID) -> str:
    return seen[pk].mark if pk in seen else ""


def _news(row: Request) -> str:
    """One new question, with as much as a browser's notification says of it."""
    facts = {"id": row.pk, "line": question_line(row.decision_text), "print": row.fingerprint}
    html = render_to_string("gates/_news.html", {"news": facts})
    return _partial("#inbox-news", "beforeend", html)


def _partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html}</hx-partial>'
