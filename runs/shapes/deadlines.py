"""What an author says about the time of a question, checked and as it goes into the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from runs.kernel import clocks
from runs.kernel.answers import refusal
from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import JSONValue, JsonValueError, thaw

OnExpiry = Literal["reject", "answer", "escalate", "stay-open"]
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
    escalate_to: Mapping[str, list[str]] | None,
    escalate_seconds: float | None,
    remind_before_seconds: Sequence[float],
) -> dict[str, Any]:
    """The fields of `callback-routed` about time; raises DeclarationError.

    Of a time and its seconds one is given. Seconds count from the moment the question is posted.
    """
    routing: dict[str, Any] = {
        **_end(who, "due", due_at, due_in_seconds),
        **_end(who, "expires", expires_at, expires_in_seconds),
    }
    expires = "expiresAt" in routing or "expiresInSeconds" in routing
    if on_expiry not in clocks.ON_EXPIRY:
        raise DeclarationError(f"on_expiry of {who} is one of {', '.join(clocks.ON_EXPIRY)}.")
    if not expires and (on_expiry != clocks.REJECT or default_answer or escalate_to):
        raise DeclarationError(f"{who} says what follows when its time is over, and has no end.")
    if expires:
        routing["onExpiry"] = on_expiry
    _needs(who, "default_answer", default_answer, on_expiry == clocks.ANSWER, '"answer"')
    _needs(who, "escalate_to", escalate_to, on_expiry == clocks.ESCALATE, '"escalate"')
    if default_answer is not None:
        routing["defaultAnswer"] = _answer(who, schema, default_answer)
    if escalate_to is not None:
        routing["escalateTo"] = _audience(who, escalate_to)
    if escalate_seconds is not None:
        _needs(
            who, "escalate_seconds", escalate_seconds, on_expiry == clocks.ESCALATE, '"escalate"'
        )
        routing["escalateSeconds"] = _seconds(who, "escalate_seconds", escalate_seconds)
    if remind_before_seconds:
        if not routing:
            raise DeclarationError(f"{who} reminds before a time, and has none.")
        routing["remindBeforeSeconds"] = _reminders(who, remind_before_seconds)
    return routing


def _end(who: str, name: str, at: datetime | None, seconds: float | None) -> dict[str, Any]:
    if at is not None and seconds is not None:
        raise DeclarationError(f"{who} takes {name}_at or {name}_in_seconds, not both.")
    if seconds is not None:
        return {f"{name}InSeconds": _seconds(who, f"{name}_in_seconds", seconds)}
    if at is None:
        return {}
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise DeclarationError(f"{name}_at of {who} is a datetime with its zone.")
    return {f"{name}At": clocks.iso(round((at - _EPOCH).total_seconds() * 1000))}


def _seconds(who: str, name: str, given: object) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 < float(given) <= clocks.MAX_SECONDS:  # type: ignore[arg-type]  # a number by then
        raise DeclarationError(f"{name} of {who} is a number of seconds, more than 0.")
    return given  # type: ignore[return-value]  # a number by then


def _reminders(who: str, given: Sequence[float]) -> list[float]:
    if isinstance(given, str) or len(given) > clocks.MAX_REMINDERS:
        raise DeclarationError(
            f"remind_before_seconds of {who} lists at most {clocks.MAX_REMINDERS} numbers."
        )
    return [_seconds(who, "remind_before_seconds", one) for one in given]


def _needs(who: str, name: str, given: object, wanted: bool, rule: str) -> None:
    if (given is not None) != wanted and not (wanted and name == "escalate_seconds"):
        raise DeclarationError(f"{name} of {who} goes with on_expiry={rule}, and only with it.")


def _audience(who: str, given: Mapping[str, list[str]]) -> dict[str, list[str]]:
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
