"""What a program says about the time of its question, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from gates import columns
from gates.errors import DefinitionRefused
from runs.audiences import AudienceRefused, tokens_of
from runs.kernel import clocks
from runs.kernel.jsonable import thaw
from runs.validation import faults_of

FIELDS: Final = frozenset(
    {
        *("dueAt", "dueInSeconds", "expiresAt", "expiresInSeconds", "onExpiry"),
        *("defaultAnswer", "escalateTo", "escalateSeconds", "remindBeforeSeconds"),
    }
)
_ONLY_WITH: Final = {
    "defaultAnswer": clocks.ANSWER,
    "escalateTo": clocks.ESCALATE,
    "escalateSeconds": clocks.ESCALATE,
}


def deadline_routing(given: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """The fields of `callback-routed` about time; seconds become times when it is posted."""
    said = {name: given[name] for name in FIELDS if given.get(name) is not None}
    routed: dict[str, Any] = {**_end(said, "due"), **_end(said, "expires")}
    expires = "expiresAt" in routed or "expiresInSeconds" in routed
    rule = said.get("onExpiry", clocks.REJECT)
    if rule not in clocks.ON_EXPIRY:
        raise DefinitionRefused("onExpiry", f"onExpiry is one of {', '.join(clocks.ON_EXPIRY)}.")
    if "onExpiry" in said and not expires:
        raise DefinitionRefused("onExpiry", "onExpiry needs expiresAt or expiresInSeconds.")
    for name, wanted in _ONLY_WITH.items():
        if name in said and rule != wanted:
            raise DefinitionRefused(name, f"{name} goes with onExpiry {wanted}, and only with it.")
    if expires:
        routed["onExpiry"] = rule
    if rule == clocks.ANSWER:
        routed["defaultAnswer"] = _answer(said.get("defaultAnswer"), schema)
    if rule == clocks.ESCALATE:
        routed["escalateTo"] = audience("escalateTo", said.get("escalateTo"))
        if "escalateSeconds" in said:
            routed["escalateSeconds"] = _seconds("escalateSeconds", said["escalateSeconds"])
    if "remindBeforeSeconds" in said:
        routed["remindBeforeSeconds"] = _reminders(said["remindBeforeSeconds"], routed)
    return routed


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
        name, f"{name} holds lists of names under users, groups, permissions or keys."
    )


def _end(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    at, seconds = f"{name}At", f"{name}InSeconds"
    if at in said and seconds in said:
        raise DefinitionRefused(seconds, f"A question takes {at} or {seconds}, not both.")
    if seconds in said:
        return {seconds: _seconds(seconds, said[seconds])}
    return {at: _time(at, said[at])} if at in said else {}


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
