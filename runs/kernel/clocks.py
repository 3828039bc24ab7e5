"""How long a question waits: when somebody is reminded, and what follows when nobody answers.

The times are part of the record, so every reader of it comes to the same end at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from runs.kernel import worktime
from runs.kernel.events import Path

REJECT: Final = "reject"
ANSWER: Final = "answer"
ESCALATE: Final = "escalate"
STAY_OPEN: Final = "stay-open"
ON_EXPIRY: Final = (REJECT, ANSWER, ESCALATE, STAY_OPEN)
# Ten years: longer than any question waits, and far from the end of the calendar.
MAX_SECONDS: Final = 315_360_000
MAX_REMINDERS: Final = 10
MAX_LEVELS: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The times of one open question, in ms since the epoch; `reminders` are those still to come.

    `rule` is what its asker said about the end: `onExpiry`, `defaultAnswer`, `escalateTo`.
    `lasts_ms` is the time the first audience had, which is the next one's where nothing else is
    said; `level` counts how often the question has gone on to others.
    """

    path: Path = ()
    due_at: int | None = None
    expires_at: int | None = None
    reminders: tuple[int, ...] = ()
    lasts_ms: int = 0
    level: int = 0
    rule: Mapping[str, Any] = field(default_factory=dict)

    @property
    def next_at(self) -> int | None:
        """When something happens by itself, if it ever does."""
        times = (
            self.reminders[:1] if self.expires_at is None else (*self.reminders, self.expires_at)
        )
        return min(times, default=None)

    def is_over(self, now: int) -> bool:
        """Whether the time is up: it ends at the instant, not after it."""
        return self.expires_at is not None and self.expires_at <= now

    def reminded(self, now: int) -> Clock:
        return replace(self, reminders=tuple(at for at in self.reminders if at > now))

    @property
    def levels(self) -> tuple[Any, ...]:
        """The audiences that are asked one after the other when nobody answers in time."""
        to = self.rule.get("escalateTo", {})
        return tuple(to) if isinstance(to, list | tuple) else (to,)

    def next_end(self, now: int) -> int:
        """Until when the audience that is asked next has time, counted from now."""
        hours = _at(self.rule.get("escalateBusinessHours"), self.level)
        seconds = _at(self.rule.get("escalateSeconds"), self.level)
        if hours is None and seconds is None:
            hours = _at(self.rule.get("expiresInBusinessHours"), 0)
        if hours is not None:
            return worktime.after(calendar_of(self.rule), now, hours)
        return now + (self.lasts_ms if seconds is None else round(seconds * 1000))

    def renewed(self, expires_at: int, now: int, on_expiry: str) -> Clock:
        """The clock of the audience that is asked next; the end of the last one's time is a no."""
        before = self.rule.get("remindBeforeSeconds")
        return replace(
            self,
            expires_at=expires_at,
            reminders=_reminders(before, expires_at, now),
            level=self.level + 1,
            rule={**self.rule, "onExpiry": on_expiry},
        )


def _at(given: Any, level: int) -> float | None:
    """The number of a level: one number is every level's."""
    if isinstance(given, list | tuple):
        given = given[level] if level < len(given) else None
    return given if isinstance(given, int | float) and not isinstance(given, bool) else None


def timed(routing: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Durations become times when the question is posted; the clock starts there (peers.md D12)."""
    given = dict(routing)
    for seconds, name in (("dueInSeconds", "dueAt"), ("expiresInSeconds", "expiresAt")):
        if seconds in given:
            given[name] = iso(now + round(float(given.pop(seconds)) * 1000))
    if any(name in given for name in BUSINESS_HOURS):
        given = in_working_time(given, now, None, worktime.DEFAULT)
    return given


BUSINESS_HOURS: Final = {
    "dueInBusinessHours": "dueAt",
    "expiresInBusinessHours": "expiresAt",
    "escalateBusinessHours": "",
}


def asks_for_calendar(routing: Mapping[str, Any]) -> bool:
    """Whether its hours were counted by the default calendar because its asker named none."""
    return "calendarOf" in routing and routing["calendarOf"] is None


def in_working_time(
    routing: Mapping[str, Any], now: int, of: str | None, calendar: worktime.Calendar
) -> dict[str, Any]:
    """Working hours become times; the calendar they were counted by stands beside them.

    A calendar of the asker's own comes first. Otherwise `calendar` is that of the team `of`, or
    the default one where `of` is None. The hours stay, for people and for what comes after.
    """
    given = dict(routing)
    if "calendar" not in given or "calendarOf" in given:
        given |= {"calendar": calendar.to_json(), "calendarOf": of}
    counted_by = calendar_of(given)
    for name, at in BUSINESS_HOURS.items():
        if at and name in given:
            given[at] = iso(worktime.after(counted_by, now, float(given[name])))
    return given


def calendar_of(routing: Mapping[str, Any]) -> worktime.Calendar:
    """The calendar of a question as its record has it.

    It was checked when it was declared; a machine that knows its zone no longer, or a record that
    was written by hand, must not keep a run from going on.
    """
    try:
        return worktime.read_calendar(routing.get("calendar", {}))
    except ValueError:
        return worktime.DEFAULT


def started(known: Clock | None, path: Path, routing: Mapping[str, Any], now: int) -> Clock | None:
    """The clock of a question that is routed like this; one that runs is not wound back."""
    due_at, expires_at = ms(routing.get("dueAt")), ms(routing.get("expiresAt"))
    if known is not None:
        if known.expires_at is not None or expires_at is None:
            return known
        due_at = known.due_at or due_at
    if due_at is None and expires_at is None:
        return None
    ends = expires_at if due_at is None else due_at
    assert ends is not None
    return Clock(
        path=path,
        due_at=due_at,
        expires_at=expires_at,
        reminders=_reminders(routing.get("remindBeforeSeconds"), ends, now),
        lasts_ms=0 if expires_at is None else max(0, expires_at - now),
        rule=routing,
    )


def _reminders(before: Any, ends: int, now: int) -> tuple[int, ...]:
    if not isinstance(before, Iterable) or isinstance(before, str):
        return ()
    times = {ends - round(seconds * 1000) for seconds in before if isinstance(seconds, int | float)}
    return tuple(sorted(at for at in times if at > now))


def iso(ms: int) -> str:
    """A time as it is written on the wire: RFC 3339, UTC, milliseconds."""
    at = _EPOCH + timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ms(value: Any) -> int | None:
    """A time that an author wrote; None when it is none."""
    try:
        at = datetime.fromisoformat(value)
        return (at.astimezone(UTC) - _EPOCH) // _MS if at.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def expired_words(fields: Mapping[str, Any]) -> str:
    """What is said of a question whose time was over: never as if somebody had answered it."""
    at = ms(fields.get("expiredAt"))
    who = "nobody answered"
    if fields.get("responded"):
        who = f"only {fields['responded']} of {fields.get('needed')} answered"
    shown = (
        "its time" if at is None else f"{_EPOCH + timedelta(milliseconds=at):%Y-%m-%d %H:%M} UTC"
    )
    return f"expired at {shown}, {who}"


def expired_text(fields: Mapping[str, Any]) -> str:
    """The same with what came of it, from the fields of `callback-expired`."""
    words = expired_words(fields)
    return f"{words}; its default answer counts" if "answer" in fields else words
