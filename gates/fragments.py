"""The frames of the inbox socket: the count, what is new, rows whose claim changed."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.template.loader import render_to_string

from gates import queries
from gates.models import Request
from gates.rows import rows_for
from runs.principals import Principal

WATCHED: Final = 100
_BANNERS: Final = {
    "other": ("claimed", "{who} claimed this question."),
    "answered": ("answered", "{who} answered this question while you were reading."),
}


class SignedOut(Exception):
    """The person behind the socket may not look any more."""


class InboxNews:
    """What one page knows of the inbox; each frame says only what differs from it."""

    def __init__(self, user_pk: int) -> None:
        self._user_pk = user_pk
        self._known: dict[UUID, str] | None = None
        self._count = -1

    def frame(self) -> str:
        """Read the inbox anew and write the difference; empty when there is none."""
        user = User.objects.filter(pk=self._user_pk, is_active=True).first()
        if user is None:
            raise SignedOut(str(self._user_pk))
        who = Principal.for_user(user)
        counts = queries.inbox_counts(who)
        out = []
        if (count := counts["unclaimed"] + counts["mine"]) != self._count:
            self._count = count
            html = render_to_string("shared/_count.html", {"inbox_count": count})
            out.append(_partial("#inbox-count", "outerHTML", html))
        shown = {row.pk: _mark(row) for row in queries.open_for(who, WATCHED)}
        known, self._known = self._known, shown
        if known is None:
            return "".join(out)
        out += [_news(pk) for pk in shown if pk not in known]
        changed = [pk for pk, mark in known.items() if shown.get(pk) != mark]
        out += self._changed(who, changed)
        return "".join(out)

    def _changed(self, who: Principal, keys: list[UUID]) -> list[str]:
        """Rows that were claimed, released or answered, and a banner where one is open."""
        found = list(Request.objects.select_related("run").filter(pk__in=keys))
        out = []
        for row in rows_for(who, found):
            html = render_to_string("gates/_row.html", {"row": row})
            out.append(_partial(f"#row-{row.id}", "outerHTML", html))
            if row.claim_state in _BANNERS:
                kind, text = _BANNERS[row.claim_state]
                by = row.holder_label if row.claim_state == "other" else row.answered_by
                if row.claim_state == "answered" and by == who_label(who):
                    continue
                banner = {"kind": kind, "text": text.format(who=by), "url": row.url, "link": "Show"}
                shown = render_to_string("shared/_banner.html", {"banner": banner})
                out.append(_partial(f"#gate-{row.id}-banner", "innerHTML", shown))
        return out


def who_label(who: Principal) -> str:
    """The reader's own name as lists show it."""
    return "" if who.user is None else who.user.get_full_name() or who.user.username


def _mark(row: Request) -> str:
    return f"{row.status} {row.holder} {row.claim_seq}"


def _news(pk: UUID) -> str:
    return _partial("#inbox-news", "beforeend", f'<li id="news-{pk}" data-gate="{pk}"></li>')


def _partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="{target}" hx-swap="{swap}">{html}</hx-partial>'
