"""Keyset paging: where a list goes on, as an opaque text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Length

from gates.errors import CursorRefused
from gates.models import Request, Response
from runs.feeds import bounded
from runs.kernel.jsonable import JsonValueError, canonical_json, parse_json


@dataclass(frozen=True, slots=True)
class Order:
    """A total order of requests; each key is (column, descending)."""

    keys: tuple[tuple[str, bool], ...]

    def names(self) -> list[str]:
        """The keys as `order_by` takes them."""
        return [f"-{name}" if down else name for name, down in self.keys]

    def sorted(self, rows: Sequence[Request]) -> list[Request]:
        """The rows in this order."""
        ordered = list(rows)
        for name, down in reversed(self.keys):
            ordered.sort(key=lambda row: getattr(row, name), reverse=down)
        return ordered

    def after(self, cursor: str) -> Q:
        """The rows that come after the cursor's."""
        values = self._read(cursor)
        first, down = self.keys[0]
        later = Q()
        same = Q()
        for (name, descending), value in zip(self.keys, values, strict=True):
            later |= same & Q(**{f"{name}__{'lt' if descending else 'gt'}": value})
            same &= Q(**{name: value})
        # Says nothing new, but lets an index begin at the right place.
        return Q(**{f"{first}__{'lte' if down else 'gte'}": values[0]}) & later

    def cursor(self, row: Request) -> str:
        """Where the list goes on after this row."""
        values = [_wire(getattr(row, name)) for name, _ in self.keys]
        return base64.urlsafe_b64encode(canonical_json(values).encode()).decode().rstrip("=")

    def _read(self, cursor: str) -> list[Any]:
        try:
            text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            values = parse_json(text)
            if not isinstance(values, list) or len(values) != len(self.keys):
                raise ValueError(cursor)
            return [_READ[name](value) for (name, _), value in zip(self.keys, values, strict=True)]
        except (binascii.Error, JsonValueError, ValueError, TypeError, OverflowError):
            raise CursorRefused("This cursor is not one that a list handed out.") from None


def _wire(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**31 - 1:
        raise ValueError(value)
    return value


def _time(value: Any) -> datetime:
    at = datetime.fromisoformat(value)
    if at.tzinfo is None:
        raise ValueError(value)
    # A zone may carry the first and the last day past the end of the calendar.
    return at.astimezone(UTC)


def _uuid(value: Any) -> UUID:
    if not isinstance(value, str):
        raise TypeError(value)
    return UUID(value)


def _status(value: Any) -> str:
    if value not in Request.OPEN:
        raise ValueError(value)
    return str(value)


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "status": _status,
    "priority": _number,
    "due_order": _time,
    "created_at": _time,
    "changed_at": _time,
    "id": _uuid,
}
# Urgent first, then what is due, then what has waited longest.
URGENT_FIRST: Final = Order(
    (("priority", True), ("due_order", False), ("created_at", False), ("id", False))
)
# A queue shows what nobody holds before what somebody holds: "pending" comes after "claimed".
FREE_FIRST: Final = Order((("status", True), *URGENT_FIRST.keys))
NEWEST_FIRST: Final = Order((("changed_at", True), ("id", True)))


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list, and the cursor for the rest."""

    rows: list[Request]
    next: str | None


def page_of(
    parts: Sequence[QuerySet[Request]],
    order: Order,
    cursor: str | None,
    limit: int,
    without: Sequence[str] = (),
    *,
    is_bounded: bool = False,
) -> Page:
    """The first rows of several disjoint lists merged in one order.

    Each part is read through its own index and gives `limit + 1` rows at most, so the cost does
    not grow with the table. All parts go into one statement. `without` are columns left unread;
    a bounded page ends where its texts are as long as one answer may be.
    """
    limit = max(1, min(limit, 200))
    after = order.after(cursor) if cursor else Q()
    keys = _first_keys([part.filter(after) for part in parts], order, limit + 1)
    if is_bounded:
        limit = min(limit, _fitting(keys, order))
        keys = keys[: limit + 1]
    found = Request.objects.select_related("run").filter(pk__in=keys).defer(*without)
    rows = order.sorted(list(found))
    more = len(rows) > limit
    return Page(rows[:limit], order.cursor(rows[limit - 1]) if more else None)


def _fitting(keys: list[UUID], order: Order) -> int:
    """How many of the first questions one answer carries, with their answers."""
    given = Response.objects.filter(request=OuterRef("pk")).order_by().values("request")
    answers = Subquery(given.annotate(length=Sum(Length("response"))).values("length"))
    lengths = bounded.text_length(Request) + Coalesce(answers, 0)
    found = Request.objects.filter(pk__in=keys).order_by(*order.names())
    return max(1, bounded.fitting(length for _, length in found.values_list("pk", lengths)))


def _first_keys(parts: Sequence[QuerySet[Request]], order: Order, count: int) -> list[UUID]:
    """The first primary keys of all parts together."""
    at = [name for name, _ in order.keys].index("id")
    keys = [head[at] for head in first_of(parts, order, count)]
    return [key if isinstance(key, UUID) else UUID(str(key)) for key in keys]


def last_of(parts: Sequence[QuerySet[Request]], order: Order, count: int) -> Any:
    """The first key of the row that is number `count` of all parts together.

    None where there are fewer. It is the database that counts; one value comes back.
    """
    key, down = order.keys[0]
    statement, parameters = union(
        [part.order_by(*order.names()).values(key)[:count] for part in parts]
    )
    if not statement:
        return None
    name = connection.ops.quote_name(key)
    sql = (
        f"SELECT {name} FROM ({statement}) AS heads "  # noqa: S608  no outside text
        f"ORDER BY {name} {'DESC' if down else 'ASC'} LIMIT 1 OFFSET %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*parameters, count - 1])
        found = cursor.fetchone()
    return None if found is None else _moment(found[0])


def _moment(value: Any) -> Any:
    """A time as the database's driver gives it, as one that a filter takes."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value


def union(queries: Sequence[QuerySet[Any, Any]]) -> tuple[str, list[Any]]:
    """One statement that has the rows of all of them, and its parameters."""
    statements: list[str] = []
    parameters: list[Any] = []
    for number, query in enumerate(queries):
        try:
            sql, values = query.query.sql_with_params()
        except EmptyResultSet:
            continue  # the compiler knows that nothing fits
        # A limit inside a compound needs a select of its own around it on SQLite.
        statements.append(f"SELECT * FROM ({sql}) AS part_{number}")  # noqa: S608  no outside text
        parameters += values
    return " UNION ALL ".join(statements), parameters


def first_of(
    parts: Sequence[QuerySet[Request]], order: Order, count: int, *more: str
) -> list[tuple[Any, ...]]:
    """The keys of the order, and `more` columns, of the first rows of all parts together.

    Found by one UNION ALL; values are as the database's driver gives them.
    """
    columns = [name for name, _ in order.keys]
    statement, parameters = union(
        [part.order_by(*order.names()).values_list(*columns, *more)[:count] for part in parts]
    )
    if not statement:
        return []
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        heads: list[tuple[Any, ...]] = cursor.fetchall()
    for number, (_, down) in reversed(list(enumerate(order.keys))):
        heads.sort(key=itemgetter(number), reverse=down)
    return heads[:count]
