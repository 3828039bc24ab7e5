"""What the operations of the API share: the caller, the JSON of an answer, the pages of a list."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from runs.access import Forbidden
from runs.errors import RunsError
from runs.feeds import bounded
from runs.kernel.jsonable import parse_json
from runs.people.principals import Principal

MAX_LIMIT: Final = 200
DEFAULT_LIMIT: Final = 50
Row = TypeVar("Row", bound=Model)


class ScopeMissing(Forbidden):
    """The key was made without the scope that this operation needs."""

    code = "scope"


class PageUnknown(RunsError):
    """The cursor is not one that a list handed out."""

    code = "cursor"
    field = "cursor"


def caller(request: HttpRequest, scope: str) -> Principal:
    """Who calls, allowed to by its key; `auth` is set by the site's authentication."""
    who: Principal = request.auth  # type: ignore[attr-defined]  # ninja puts it there
    if not who.has_scope(scope):
        raise ScopeMissing(f"This key has no scope {scope!r}. Make one that has it.")
    return who


def json_text(data: object) -> str:
    """JSON whose numbers and texts read back as the very values that were stored."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def reply(data: object, status: int = 200) -> HttpResponse:
    """A JSON answer; what it holds depends on who asks, so nobody keeps it."""
    answer = HttpResponse(json_text(data), status=status, content_type="application/json")
    answer["Cache-Control"] = "no-store"
    return answer


def page_of(
    rows: QuerySet[Row],
    limit: int,
    to_wire: Callable[[Row], Mapping[str, Any]],
    key: Callable[[Row], list[Any]],
) -> dict[str, Any]:
    """The first rows, `limit` or what one answer carries, and the cursor of the rows after them."""
    return pages_of(rows, limit, lambda page: [to_wire(row) for row in page], key)


def pages_of(
    rows: QuerySet[Row],
    limit: int,
    to_wire: Callable[[list[Row]], Sequence[Mapping[str, Any]]],
    key: Callable[[Row], list[Any]],
) -> dict[str, Any]:
    """The same for rows that are told together."""
    sized = list(rows.values_list("pk", bounded.text_length(rows.model))[: limit + 1])
    wanted = [pk for pk, _ in sized[: bounded.fitting(size for _, size in sized[:limit])]]
    page = sorted(rows.filter(pk__in=wanted), key=lambda row: wanted.index(row.pk))
    following = cursor_of(key(page[-1])) if page and len(sized) > len(wanted) else None
    return {"items": to_wire(page), "next": following}


def cursor_of(place: list[Any]) -> str:
    """Where a page ended, as a text to hand back."""
    return base64.urlsafe_b64encode(json_text(place).encode()).decode().rstrip("=")


def place_of(cursor: str, length: int) -> list[str]:
    """The place a cursor holds: `length` texts."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place = parse_json(text)
    except (binascii.Error, ValueError):
        place = None
    if not isinstance(place, list) or len(place) != length:
        raise _unknown()
    if not all(isinstance(part, str) and "\0" not in part for part in place):
        raise _unknown()
    return place


def moment_and_id(cursor: str) -> tuple[datetime, UUID]:
    """The place of a list that is sorted by time and then by id."""
    at, key = place_of(cursor, 2)
    try:
        return datetime.fromisoformat(at).astimezone(UTC), UUID(key)
    except (ValueError, OverflowError) as error:
        raise _unknown() from error


def _unknown() -> PageUnknown:
    return PageUnknown("No list handed out this cursor. Start again without one.")
