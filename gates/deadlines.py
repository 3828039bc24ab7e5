"""What a program says about the time of its question, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from gates import columns
from gates.errors import DefinitionRefused
from runs.inputs.validation import faults_of
from runs.kernel import clocks, worktime
from runs.kernel.jsonable import thaw
from runs.people.audiences import AudienceRefused, tokens_of

FIELDS: Final = frozenset(
    {
        *("dueAt", "dueInSeconds", "expiresAt", "expiresInSeconds", "onExpiry"),
        *("defaultAnswer", "escalateTo", "escalateSeconds", "remindBeforeSeconds"),
        *clocks.BUSINESS_HOURS,
        "calendar",
    }
)
_ONLY_WITH: Final = {
    "defaultAnswer": clocks.ANSWER,
    "escalateTo": clocks.ESCALATE,
    "escalateSeconds": clocks.ESCALATE,
    "escalateBusinessHours": clocks.ESCALATE,
}


def deadline_routing(given: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """The fields of `callback-routed` about time; seconds become times when it is posted."""
    said = {name: given[name] for name in FIELDS if given.get(name) is not None}
    routed: dict[str, Any] = {**_end(said, "due"), **_end(said, "expires")}
    expires = any(name.startswith("expires") for name in routed)
    rule = said.get("onExpiry", clocks.REJECT)
    if rule not in clocks.ON_EXPIRY:
        raise DefinitionRefused("onExpiry", f"onExpiry is one of {', '.join(clocks.ON_EXPIRY)}.")
    if "onExpiry" in said and not expires:
        raise DefinitionRefused("onExpiry", "onExpiry needs a time at which it expires.")
    for name, wanted in _ONLY_WITH.items():
        if name in said and rule != wanted:
            raise DefinitionRefused(name, f"{name} goes with onExpiry {wanted}, and only with it.")
    if expires:
        routed["onExpiry"] = rule
    if rule == clocks.ANSWER:
        routed["defaultAnswer"] = _answer(said.get("defaultAnswer"), schema)
    if rule == clocks.ESCALATE:
        routed |= _escalation(said)
    if "calendar" in said:
        routed["calendar"] = _calendar(said["calendar"], routed)
    if "remindBeforeSeconds" in said:
        routed["remindBeforeSeconds"] = _reminders(said["remindBeforeSeconds"], routed)
    return routed


def _escalation(said: Mapping[str, Any]) -> dict[str, Any]:
    """Who is asked next, one or one after the other, and how long each of them has."""
    to = said.get("escalateTo")
    levels = to if isinstance(to, list) else [to]
    if not 0 < len(levels) <= clocks.MAX_LEVELS:
        raise DefinitionRefused(
            "escalateTo", f"escalateTo lists at most {clocks.MAX_LEVELS} audiences."
        )
    checked = [audience("escalateTo", level) for level in levels]
    routed: dict[str, Any] = {"escalateTo": checked if isinstance(to, list) else checked[0]}
    if "escalateSeconds" in said and "escalateBusinessHours" in said:
        raise DefinitionRefused(
            "escalateBusinessHours",
            "A question takes escalateSeconds or escalateBusinessHours, not both.",
        )
    for name, check in (("escalateSeconds", _seconds), ("escalateBusinessHours", _hours)):
        if name in said:
            given = said[name]
            if isinstance(given, list) and len(given) != len(levels):
                raise DefinitionRefused(
                    name, f"{name} is a number, or one for each audience of escalateTo."
                )
            many = given if isinstance(given, list) else [given]
            found = [check(name, one) for one in many]
            routed[name] = found if isinstance(given, list) else found[0]
    return routed


def _calendar(given: Any, routed: Mapping[str, Any]) -> dict[str, Any]:
    if not any(name in routed for name in clocks.BUSINESS_HOURS):
        raise DefinitionRefused("calendar", "calendar goes with business hours, and has none.")
    try:
        return worktime.read_calendar(given).to_json()
    except ValueError as error:
        raise DefinitionRefused("calendar", f"calendar: {error}") from None


def audience(name: str, given: Any) -> dict[str, Any]:
    """An audience as it is given; somebody has to be meant where the question goes on to."""
    try:
        tokens_of(given)
    except (AudienceRefused, AttributeError):
        raise _no_audience(name) from None
    if name == "escalateTo" and not given:
        raise _no_audience(name)
    return dict(given or {})


def _no_audience(name: str) -> DefinitionRefused:
    return DefinitionRefused(
        name, f"{name} holds lists of names under users, groups, permissions, keys or routers."
    )


def _end(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    at, seconds, hours = f"{name}At", f"{name}InSeconds", f"{name}InBusinessHours"
    given = [one for one in (at, seconds, hours) if one in said]
    if len(given) > 1:
        raise DefinitionRefused(given[-1], f"A question takes one of {at}, {seconds} and {hours}.")
    if hours in said:
        return {hours: _hours(hours, said[hours])}
    if seconds in said:
        return {seconds: _seconds(seconds, said[seconds])}
    return {at: _time(at, said[at])} if at in said else {}


def _hours(name: str, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= worktime.MAX_HOURS:
        raise DefinitionRefused(
            name, f"{name} is a number of hours, more than 0 and at most {worktime.MAX_HOURS}."
        )
    return value


def _time(name: str, value: Any) -> str:
    at: datetime | None = columns.time_of(value)
    if at is None:
        raise DefinitionRefused(name, f"{name} is a time with its zone: 2026-03-31T14:00:00Z.")
    if name == "expiresAt" and at <= timezone.now():
        raise DefinitionRefused(name, "expiresAt is over already.")
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(name: str, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= clocks.MAX_SECONDS:
        raise DefinitionRefused(name, f"{name} is a number of seconds, more than 0.")
    return value


def _reminders(value: Any, routed: Mapping[str, Any]) -> list[Any]:
    name = "remindBeforeSeconds"
    if not isinstance(value, list) or len(value) > clocks.MAX_REMINDERS:
        raise DefinitionRefused(name, f"{name} lists at most {clocks.MAX_REMINDERS} numbers.")
    if not routed:
        raise DefinitionRefused(name, f"{name} needs a time to remind before: dueAt or expiresAt.")
    return [_seconds(name, one) for one in value]


def _answer(value: Any, schema: Any) -> Any:
    if not isinstance(value, Mapping):
        raise DefinitionRefused("defaultAnswer", "onExpiry answer needs a defaultAnswer.")
    faults = faults_of(thaw(schema), value)
    if faults:
        field, text = faults[0]
        where = f"{field}: " if field else ""
        raise DefinitionRefused("defaultAnswer", f"defaultAnswer does not answer: {where}{text}")
    return dict(value)
