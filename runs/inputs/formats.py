"""The formats of JSON Schema that are checked: those a person is asked to type."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from jsonschema import FormatChecker

format_checker: Final = FormatChecker(formats=())
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATE_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`\x00-\x20]+")
_email: Final = EmailValidator()


@format_checker.checks("date", raises=ValueError)
def is_date(value: Any) -> bool:
    """A day of the calendar, as 2026-03-31."""
    if not isinstance(value, str):
        return True
    return bool(_DATE.fullmatch(value)) and date.fromisoformat(value) is not None


@format_checker.checks("date-time", raises=ValueError)
def is_date_time(value: Any) -> bool:
    """A moment with its zone, as RFC 3339 writes it."""
    if not isinstance(value, str):
        return True
    # Python reads at most six digits of a second; the others say nothing about the form.
    readable = re.sub(r"(\.\d{1,6})\d*", r"\1", value.upper())
    return bool(_DATE_TIME.fullmatch(value)) and datetime.fromisoformat(readable) is not None


@format_checker.checks("email", raises=ValidationError)
def is_email(value: Any) -> bool:
    """An address as Django takes it."""
    if isinstance(value, str):
        _email(value)
    return True


@format_checker.checks("uri")
def is_uri(value: Any) -> bool:
    """A scheme and something after it, without blanks."""
    return not isinstance(value, str) or bool(_URI.fullmatch(value))
