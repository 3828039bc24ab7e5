"""Lists of questions: a person's inbox, a team's queue, and what a program asks for.

Every list takes a constant number of statements, each bounded by the page and not by the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Q, QuerySet, Value

from gates import access
from gates.lists.cursors import (
    FREE_FIRST,
    NEWEST_FIRST,
    URGENT_FIRST,
    Order,
    last_of,
    page_of,
    union,
)
from gates.lists.narrowing import looks_closer, narrow, search
from gates.lists.rows import InboxRow, rows_for
from gates.models import Request, Response
from gates.principals import Principal
from runs.people.audiences import audiences_with

TABS: Final = ("mine", "unclaimed", "others", "asked", "history")
COUNTED_TO: Final = 99
QUEUE_TO: Final = 999
# No index finds words, and a history may have millions of rows.
LOOKED_AT: Final = 10_000
PAGE: Final = 50
_CLOSED: Final = (Request.Status.ANSWERED, Request.Status.EXPIRED, Request.Status.CANCELLED)
# What a line of a list does not show may be megabytes, and a socket reads its list at every ring.
_HEAVY: Final = ("input", "presentation", "run__params", "run__outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """One tab of a person's inbox."""

    tab: str
    rows: list[InboxRow]
    next: str | None
    counts: Mapping[str, int]
    # How many of each kind are in the list, narrowed or not; of none in a history.
    kinds: Mapping[str, int] = field(default_factory=dict)


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
    audiences = access.answerable_audiences(principal)
    given = {**(filters or {}), "q": q}
    parts = _parts(principal, tab, audiences)
    if tab == "history" and looks_closer(given):
        since = last_of(parts, NEWEST_FIRST, LOOKED_AT)
        parts = parts if since is None else [part.filter(changed_at__gte=since) for part in parts]
    narrowed = narrow(given)
    page = page_of([part.filter(narrowed) for part in parts], _order(tab), cursor, limit, _HEAVY)
    return Inbox(
        tab=tab,
        rows=rows_for(principal, page.rows, audiences),
        next=page.next,
        counts=_counts(principal, audiences),
        kinds={} if tab == "history" else _kinds(parts),
    )


def inbox_counts(principal: Principal) -> dict[str, int]:
    """How much waits behind each tab but history, counted up to 99, in one statement."""
    return _counts(principal, access.answerable_audiences(principal))


def open_for(principal: Principal, limit: int = PAGE) -> list[Request]:
    """What this person may answer now or holds already, most urgent first."""
    audiences = access.answerable_audiences(principal)
    parts = [part for tab in ("mine", "unclaimed") for part in _parts(principal, tab, audiences)]
    return page_of(parts, URGENT_FIRST, None, limit, _HEAVY).rows


def open_elsewhere(principal: Principal, limit: int = PAGE) -> list[Request]:
    """Open questions this person follows without holding them: held by others, or asked by them."""
    audiences = access.answerable_audiences(principal)
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
    group: str,
    *,
    principal: Principal,
    filters: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int = PAGE,
) -> Inbox:
    """The group's open questions, what nobody holds first, then by urgency.

    `counts` has those that are free and those that are held, each up to 999 (999 means more).
    """
    access.need_scope(principal, "read")
    parts = {
        status: [_of_team(principal, group, audience, status) for audience in audiences]
        for audiences in [audiences_with([f"group:{group}"])]
        for status in Request.OPEN
    }
    narrowed = narrow(filters or {})
    page = page_of(
        [part.filter(narrowed) for found in parts.values() for part in found],
        FREE_FIRST,
        cursor,
        limit,
        _HEAVY,
    )
    names = dict(zip(Request.OPEN, ("free", "held"), strict=True))
    counts = count_up_to(
        [(names[status], part) for status, found in parts.items() for part in found], QUEUE_TO
    )
    return Inbox(
        tab="team",
        rows=rows_for(principal, page.rows, access.answerable_audiences(principal)),
        next=page.next,
        counts={"free": 0, "held": 0} | counts,
        kinds=_kinds([part for found in parts.values() for part in found]),
    )


def _of_team(principal: Principal, group: str, audience: int, status: str) -> QuerySet[Request]:
    """One audience's questions of the team; whoever is not of it sees what they may see anyway."""
    is_theirs = access.sees_all(principal) or f"group:{group}" in principal.tokens
    seen = Request.objects.all() if is_theirs else access.visible_requests(principal)
    return seen.filter(audience=audience, status=status)


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
    wanted = search(q)
    named = Q()
    if kind:
        wanted &= Q(kind=kind)
    if run_id is not None:
        named &= Q(run=run_id)
    if audience:
        named &= Q(audience__in=audiences_with([audience]))
    if mine:
        wanted &= Q(audience__in=access.answerable_audiences(principal))
    visible = access.visible_requests(principal).filter(named)
    statuses = [status] if status else list(Request.OPEN)
    parts = [visible.filter(status=one) for one in statuses]
    if status in _CLOSED and (q or kind):
        parts = [_first(part) for part in parts]
    parts = [part.filter(wanted) for part in parts]
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
            done = _answered_by(principal)
            return [_for(audience, Request.Status.PENDING).exclude(done) for audience in audiences]
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


def _answered_by(principal: Principal) -> Q:
    """Questions of several people that this one has answered: they wait for others now."""
    # Asked for beside the list: inside it every answer of this person would be looked through.
    mine = Response.objects.filter(
        actor=access.person_of(principal),
        request__needed__gt=1,
        request__status__in=Request.OPEN,
    )
    return Q(pk__in=list(mine.order_by().values_list("request", flat=True)[:LOOKED_AT]))


def _first(part: QuerySet[Request]) -> QuerySet[Request]:
    """The first rows of a long list, which is as far as words are looked for in it."""
    first = part.order_by(*URGENT_FIRST.names()).values("pk")[:LOOKED_AT]
    return Request.objects.filter(pk__in=first)


def _for(audience: int, status: str) -> QuerySet[Request]:
    return Request.objects.filter(audience=audience, status=status)


def _counts(principal: Principal, audiences: list[int]) -> dict[str, int]:
    """Each tab is read up to its 99th row and no further."""
    parts = [(tab, part) for tab in TABS[:-1] for part in _parts(principal, tab, audiences)]
    return dict.fromkeys(TABS[:-1], 0) | count_up_to(parts, COUNTED_TO)


def _kinds(parts: Sequence[QuerySet[Request]]) -> dict[str, int]:
    """How many questions of each kind there are (I125), among the first 999 of each part."""
    statement, parameters = union([part.order_by().values("kind")[:QUEUE_TO] for part in parts])
    if not statement:
        return {}
    with connection.cursor() as cursor:
        # The text comes from the query compiler; values travel as parameters.
        cursor.execute(
            f"SELECT kind, COUNT(*) FROM ({statement}) AS open_ones GROUP BY kind",  # noqa: S608  no outside text
            parameters,
        )
        return {kind: min(QUEUE_TO, count) for kind, count in cursor.fetchall()}


def count_up_to(parts: Sequence[tuple[str, QuerySet[Any]]], limit: int) -> dict[str, int]:
    """How many rows there are under each name, in one statement; `limit` means as many or more."""
    counts: dict[str, int] = {}
    statements: list[str] = []
    parameters: list[Any] = []
    for number, (name, part) in enumerate(parts):
        named = part.order_by().annotate(tab=Value(name)).values_list("tab", flat=True)
        try:
            sql, values = named[:limit].query.sql_with_params()
        except EmptyResultSet:
            continue  # the compiler knows that nothing fits
        # The text comes from the query compiler; values travel as parameters.
        statements.append(f"SELECT tab, COUNT(*) FROM ({sql}) AS part_{number} GROUP BY tab")  # noqa: S608  no outside text
        parameters += values
    if not statements:
        return counts
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(statements), parameters)
        for tab, count in cursor.fetchall():
            counts[tab] = min(limit, counts.get(tab, 0) + count)
    return counts
