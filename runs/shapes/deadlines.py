"""What an author says about the time of a question, checked and as it goes into the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeGuard

from runs.kernel import clocks
from runs.kernel.answers import refusal
from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import JSONValue, JsonValueError, thaw
from runs.kernel.worktime import MAX_HOURS, read_calendar

OnExpiry = Literal["reject", "answer", "escalate", "stay-open"]
Levels = Mapping[str, list[str]] | Sequence[Mapping[str, list[str]]]
_WIRE: Final = {
    "escalate_seconds": "escalateSeconds",
    "escalate_business_hours": "escalateBusinessHours",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def deadline_routing(
    who: str,
    schema: Mapping[str, JSONValue],
    *,
    due_at: datetime | None,
    due_in_seconds: float | None,
    expires_at: datetime | None,
    expires_in_seconds: float | None,
    on_expiry: OnExpiry,
    default_answer: Mapping[str, Any] | None,
    escalate_to: Levels | None,
    escalate_seconds: float | Sequence[float] | None,
    remind_before_seconds: Sequence[float],
    due_in_business_hours: float | None = None,
    expires_in_business_hours: float | None = None,
    escalate_business_hours: float | Sequence[float] | None = None,
    calendar: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The fields of `callback-routed` about time; raises DeclarationError.

    Of a time, its seconds and its working hours one is given. They count from the moment the
    question is posted, hours by `calendar`: `{zone, days, opens, closes, holidays}`.
    """
    routing: dict[str, Any] = {
        **_end(who, "due", due_at, due_in_seconds, due_in_business_hours),
        **_end(who, "expires", expires_at, expires_in_seconds, expires_in_business_hours),
    }
    expires = any(name.startswith("expires") for name in routing)
    if on_expiry not in clocks.ON_EXPIRY:
        raise DeclarationError(f"on_expiry of {who} is one of {', '.join(clocks.ON_EXPIRY)}.")
    if not expires and (on_expiry != clocks.REJECT or default_answer or escalate_to):
        raise DeclarationError(f"{who} says what follows when its time is over, and has no end.")
    if expires:
        routing["onExpiry"] = on_expiry
    _needs(who, "default_answer", default_answer, on_expiry == clocks.ANSWER, '"answer"')
    if default_answer is not None:
        routing["defaultAnswer"] = _answer(who, schema, default_answer)
    routing |= _escalation(who, on_expiry, escalate_to, escalate_seconds, escalate_business_hours)
    return routing | _around(who, routing, calendar, remind_before_seconds)


def _escalation(
    who: str,
    on_expiry: OnExpiry,
    to: Levels | None,
    seconds: float | Sequence[float] | None,
    hours: float | Sequence[float] | None,
) -> dict[str, Any]:
    """Who is asked after the first audience, and how long each of them has."""
    wanted = on_expiry == clocks.ESCALATE
    _needs(who, "escalate_to", to, wanted, '"escalate"')
    if seconds is not None and hours is not None:
        raise DeclarationError(
            f"{who} takes escalate_seconds or escalate_business_hours, not both."
        )
    routing: dict[str, Any] = {} if to is None else {"escalateTo": _levels(who, to)}
    for name, given in (("escalate_seconds", seconds), ("escalate_business_hours", hours)):
        if given is not None:
            _needs(who, name, given, wanted, '"escalate"')
            routing[_WIRE[name]] = _of_levels(who, name, given, to)
    return routing


def _around(
    who: str, routing: Mapping[str, Any], calendar: object, remind_before_seconds: Sequence[float]
) -> dict[str, Any]:
    """By which calendar its hours are counted, and when it reminds."""
    around: dict[str, Any] = {}
    if calendar is not None:
        if not any(name in routing for name in clocks.BUSINESS_HOURS):
            raise DeclarationError(f"calendar of {who} goes with business hours, and has none.")
        around["calendar"] = _calendar(who, calendar)
    if remind_before_seconds:
        if not routing:
            raise DeclarationError(f"{who} reminds before a time, and has none.")
        around["remindBeforeSeconds"] = _reminders(who, remind_before_seconds)
    return around


def _end(
    who: str, name: str, at: datetime | None, seconds: float | None, hours: float | None
) -> dict[str, Any]:
    if sum(given is not None for given in (at, seconds, hours)) > 1:
        raise DeclarationError(
            f"{who} takes one of {name}_at, {name}_in_seconds and {name}_in_business_hours."
        )
    if hours is not None:
        said = f"{name}_in_business_hours"
        return {f"{name}InBusinessHours": _hours(who, said, hours)}
    if seconds is not None:
        return {f"{name}InSeconds": _seconds(who, f"{name}_in_seconds", seconds)}
    if at is None:
        return {}
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise DeclarationError(f"{name}_at of {who} is a datetime with its zone.")
    return {f"{name}At": clocks.iso(round((at - _EPOCH).total_seconds() * 1000))}


def _hours(who: str, name: str, given: object) -> float:
    if not _is_up_to(given, MAX_HOURS):
        raise DeclarationError(
            f"{name} of {who} is a number of hours, more than 0 and at most {MAX_HOURS}."
        )
    return given


def _calendar(who: str, given: object) -> dict[str, Any]:
    try:
        return read_calendar(given).to_json()
    except ValueError as error:
        raise DeclarationError(f"calendar of {who}: {error}") from None


def _seconds(who: str, name: str, given: object) -> float:
    if not _is_up_to(given, clocks.MAX_SECONDS):
        raise DeclarationError(f"{name} of {who} is a number of seconds, more than 0.")
    return given


def _is_up_to(given: object, most: float) -> TypeGuard[float]:
    """Whether it is a number, more than 0 and at most this."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given <= most


def _reminders(who: str, given: Sequence[float]) -> list[float]:
    if isinstance(given, str) or len(given) > clocks.MAX_REMINDERS:
        raise DeclarationError(
            f"remind_before_seconds of {who} lists at most {clocks.MAX_REMINDERS} numbers."
        )
    return [_seconds(who, "remind_before_seconds", one) for one in given]


def _needs(who: str, name: str, given: object, wanted: bool, rule: str) -> None:
    if (given is not None) != wanted and not (wanted and name in _WIRE):
        raise DeclarationError(f"{name} of {who} goes with on_expiry={rule}, and only with it.")


def _levels(who: str, given: Levels) -> dict[str, list[str]] | list[dict[str, list[str]]]:
    if isinstance(given, Mapping):
        return _audience(who, given)
    if isinstance(given, str) or not 0 < len(given) <= clocks.MAX_LEVELS:
        raise DeclarationError(
            f"escalate_to of {who} is an audience, or a list of at most {clocks.MAX_LEVELS}."
        )
    return [_audience(who, level) for level in given]


def _of_levels(
    who: str, name: str, given: float | Sequence[float], levels: Levels | None
) -> float | list[float]:
    """One number is every level's; a list has one for each."""
    check = _seconds if name == "escalate_seconds" else _hours
    if isinstance(given, int | float):
        return check(who, name, given)
    count = 1 if isinstance(levels, Mapping) or levels is None else len(levels)
    if isinstance(given, str) or len(given) != count:
        raise DeclarationError(f"{name} of {who} is a number, or one for each of escalate_to.")
    return [check(who, name, one) for one in given]


def _audience(who: str, given: Mapping[str, list[str]]) -> dict[str, list[str]]:
    if not isinstance(given, Mapping):
        raise DeclarationError(f"escalate_to of {who} holds lists of names under their kinds.")
    said = {part: [] if isinstance(names, str) else list(names) for part, names in given.items()}
    if not any(said.values()):
        raise DeclarationError(f"escalate_to of {who} holds lists of names, and names somebody.")
    return said


def _answer(who: str, schema: Mapping[str, JSONValue], given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        reason = refusal(schema, dict(given))
    except JsonValueError as error:
        reason = str(error)
    if reason is not None:
        raise DeclarationError(f"default_answer of {who} answers nothing: {reason}")
    return {name: thaw(value) for name, value in given.items()}
