"""Lists of questions: a person's inbox, a team's queue, and what a program asks for.

Every list takes a constant number of statements, each bounded by the page and not by the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet, Value
from django.utils import timezone

from gates import access
from gates.cursors import NEWEST_FIRST, URGENT_FIRST, Order, page_of
from gates.models import Request
from gates.principals import Principal
from gates.rows import InboxRow, rows_for
from runs.audiences import audiences_with

TABS: Final = ("mine", "unclaimed", "others", "asked", "history")
COUNTED_TO: Final = 99
PAGE: Final = 50
_CLOSED: Final = (Request.Status.ANSWERED, Request.Status.EXPIRED, Request.Status.CANCELLED)
# What a line of a list does not show may be megabytes, and a socket reads its list at every ring.
_HEAVY: Final = ("input", "presentation", "run__params", "run__outcome")
_SOON: Final = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """One tab of a person's inbox."""

    tab: str
    rows: list[InboxRow]
    next: str | None
    counts: Mapping[str, int]


def inbox(
    principal: Principal,
    tab: str = "unclaimed",
    *,
    q: str = "",
    filters: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int = PAGE,
) -> Inbox:
    """A tab's rows from the cursor on, and how much waits behind each tab (99 means 99 or more)."""
    access.need_scope(principal, "read")
    tab = tab if tab in TABS else "unclaimed"
    audiences = audiences_with(principal.tokens)
    narrowed = _search(q) & _narrow(filters or {})
    parts = [part.filter(narrowed) for part in _parts(principal, tab, audiences)]
    page = page_of(parts, _order(tab), cursor, limit, _HEAVY)
    return Inbox(
        tab=tab,
        rows=rows_for(principal, page.rows),
        next=page.next,
        counts=_counts(principal, audiences),
    )


def inbox_counts(principal: Principal) -> dict[str, int]:
    """How much waits behind each tab but history, counted up to 99, in one statement."""
    return _counts(principal, audiences_with(principal.tokens))


def open_for(principal: Principal, limit: int = PAGE) -> list[Request]:
    """What this person may answer now or holds already, most urgent first."""
    audiences = audiences_with(principal.tokens)
    parts = [part for tab in ("mine", "unclaimed") for part in _parts(principal, tab, audiences)]
    return page_of(parts, URGENT_FIRST, None, limit, _HEAVY).rows


def open_elsewhere(principal: Principal, limit: int = PAGE) -> list[Request]:
    """Open questions this person follows without holding them: held by others, or asked by them."""
    audiences = audiences_with(principal.tokens)
    found: dict[UUID, Request] = {}
    for tab in ("others", "asked"):
        parts = _parts(principal, tab, audiences)
        found |= {row.pk: row for row in page_of(parts, URGENT_FIRST, None, limit, _HEAVY).rows}
    return list(found.values())


def changed_since(principal: Principal, since: datetime, limit: int = PAGE) -> list[Request]:
    """What changed, newest first, of all this person may see: theirs to answer or only to watch."""
    visible = access.visible_requests(principal).filter(changed_at__gte=since)
    parts = [visible.filter(status=status) for status in Request.Status.values]
    return page_of(parts, NEWEST_FIRST, None, limit, _HEAVY).rows


def team_queue(
    group: str, *, principal: Principal, cursor: str | None = None, limit: int = PAGE
) -> Inbox:
    """The group's open questions, most urgent first; only what this caller may see."""
    access.need_scope(principal, "read")
    named = audiences_with([f"group:{group}"])
    visible = access.visible_requests(principal)
    parts = [
        visible.filter(audience=audience, status=status)
        for audience in named
        for status in Request.OPEN
    ]
    page = page_of(parts, URGENT_FIRST, cursor, limit, _HEAVY)
    return Inbox(tab="team", rows=rows_for(principal, page.rows), next=page.next, counts={})


def requests(
    principal: Principal,
    *,
    status: str = "",
    kind: str = "",
    run_id: UUID | None = None,
    audience: str = "",
    mine: bool = False,
    q: str = "",
    cursor: str | None = None,
    limit: int = PAGE,
) -> tuple[list[Request], str | None]:
    """The questions a program may see; `audience` is a token such as `group:Release`.

    Without a status these are the open ones. Returns the rows and the next cursor.
    """
    access.need_scope(principal, "read")
    wanted = _search(q)
    if kind:
        wanted &= Q(kind=kind)
    if run_id is not None:
        wanted &= Q(run=run_id)
    if audience:
        wanted &= Q(audience__in=audiences_with([audience]))
    if mine:
        wanted &= Q(audience__in=audiences_with(principal.tokens))
    visible = access.visible_requests(principal).filter(wanted)
    statuses = [status] if status else list(Request.OPEN)
    parts = [visible.filter(status=one) for one in statuses]
    page = page_of(parts, URGENT_FIRST, cursor, limit, is_bounded=True)
    return page.rows, page.next


def _order(tab: str) -> Order:
    return NEWEST_FIRST if tab == "history" else URGENT_FIRST


def _parts(principal: Principal, tab: str, audiences: list[int]) -> list[QuerySet[Request]]:
    """A tab as disjoint lists, each of which one index serves in order."""
    me = principal.actor
    mine = Request.objects.filter(status=Request.Status.CLAIMED, holder=me)
    match tab:
        case "mine":
            return [mine]
        case "unclaimed":
            return [_for(audience, Request.Status.PENDING) for audience in audiences]
        case "others":
            return [
                _for(audience, Request.Status.CLAIMED).exclude(holder=me) for audience in audiences
            ]
        case "asked":
            return [Request.objects.filter(status=one, asked_by=me) for one in Request.OPEN]
    if access.sees_all(principal):
        return [Request.objects.filter(status=status) for status in _CLOSED]
    own = [Request.objects.filter(status=status, asked_by=me) for status in _CLOSED]
    theirs = [
        _for(audience, status).exclude(asked_by=me) for audience in audiences for status in _CLOSED
    ]
    return own + theirs


def _for(audience: int, status: str) -> QuerySet[Request]:
    return Request.objects.filter(audience=audience, status=status)


def _counts(principal: Principal, audiences: list[int]) -> dict[str, int]:
    """Each tab is read up to its 99th row and no further."""
    counted = [
        part.annotate(tab=Value(tab)).values_list("tab", flat=True)
        for tab in TABS[:-1]
        for part in _parts(principal, tab, audiences)
    ]
    return _up_to(counted)


def _up_to(parts: Sequence[QuerySet[Any, Any]]) -> dict[str, int]:
    from django.db import connection

    counts = dict.fromkeys(TABS[:-1], 0)
    statements: list[str] = []
    parameters: list[Any] = []
    for number, part in enumerate(parts):
        sql, values = part[:COUNTED_TO].query.sql_with_params()
        # The text comes from the query compiler; values travel as parameters.
        statements.append(f"SELECT tab, COUNT(*) FROM ({sql}) AS part_{number} GROUP BY tab")  # noqa: S608  no outside text
        parameters += values
    if not statements:
        return counts
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(statements), parameters)
        for tab, count in cursor.fetchall():
            counts[tab] = min(COUNTED_TO, counts[tab] + count)
    return counts


def _search(q: str) -> Q:
    """Words anywhere in the question, or the start of a fingerprint or of a run's id."""
    wanted = Q()
    for word in q.replace("\0", "").split()[:8]:
        found = (
            Q(decision_text__icontains=word)
            | Q(gate_id__icontains=word)
            | Q(run__workflow__icontains=word)
            | Q(run__stream__icontains=word)
        )
        hexadecimal = word.lower().replace("-", "")
        if len(word) >= 4 and all(letter in "0123456789abcdef" for letter in hexadecimal):
            found |= Q(digest__startswith=hexadecimal) | Q(run__id__in=_runs_named(hexadecimal))
        wanted &= found
    return wanted


def _runs_named(start: str) -> list[UUID]:
    """Runs whose id begins so: a range of ids, which every database can look up."""
    from runs.models import Run

    start = start[:32]
    low, high = UUID(start.ljust(32, "0")), UUID(start.ljust(32, "f"))
    return list(Run.objects.filter(pk__gte=low, pk__lte=high).values_list("pk", flat=True)[:20])


def _narrow(filters: Mapping[str, str]) -> Q:
    """The filters of the page's address; unknown ones and empty ones narrow nothing."""
    wanted = Q()
    given = {name: value.replace("\0", "") for name, value in filters.items() if value}
    if "workflow" in given:
        wanted &= Q(run__workflow=given["workflow"])
    if given.get("kind") in Request.Kind.values:
        wanted &= Q(kind=given["kind"])
    if "team" in given:
        wanted &= Q(audience__in=audiences_with([f"group:{given['team']}"]))
    if "asked_by" in given:
        wanted &= Q(asked_by=given["asked_by"])
    if given.get("due") == "overdue":
        wanted &= Q(due_order__lt=timezone.now())
    elif given.get("due") == "soon":
        wanted &= Q(due_order__lt=timezone.now() + _SOON)
    return wanted
