"""How a line of the log is written: for a person, or for a program that collects it.

Every line carries what is known where it is written (`request_id`, `actor`, `run_id`, `step`,
`attempt`, `task`): the doors of pages and tasks bind it with structlog's contextvars, so lines of
Django, Celery and of an author's step carry it too. No line holds a value of a variable.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, Final, TextIO

import structlog

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# What opens something, wherever it comes from: keys, links that sign in, passwords of addresses.
_SECRETS: Final = (
    (re.compile(r"\bobv_[0-9a-f]{12}_[A-Za-z0-9_-]+"), "obv_…"),
    # The code of a sign-in link: a person, a time and 32 hex digits.
    (re.compile(r"\b[A-Za-z0-9_-]{1,30}\.[0-9a-z]{1,10}-[0-9a-f]{32}\b"), "…"),
    (re.compile(r"\bobvs_[A-Za-z0-9_-]+"), "obvs_…"),
    # A claim token in a body or a form that somebody wrote into a line.
    (re.compile(r"(claim_?token\W{1,6})[0-9a-f]{40}\b", re.IGNORECASE), r"\1…"),
    (re.compile(r"\b(bearer|basic)\s+[^\s'\",]+", re.IGNORECASE), r"\1 …"),
    (re.compile(r"(\w://)[^/\s@]*@"), r"\1…@"),
)
# The text of an error may be a whole document that did not fit.
LONGEST_ERROR: Final = 2_000
MAX_FRAMES: Final = 30

Line = MutableMapping[str, Any]


def logging_config(style: str) -> dict[str, Any]:
    """Return the logging setting for `text` (one readable line) or `json` (one object a line)."""
    shared = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if style == "json":
        # Without its `show_locals=False` every traceback would tell what its variables held.
        told = structlog.tracebacks.ExceptionDictTransformer(
            show_locals=False, max_frames=MAX_FRAMES
        )
        last: list[Any] = [
            structlog.processors.ExceptionRenderer(told),
            _without_secrets,
            _on_one_line,
            structlog.processors.JSONRenderer(),
        ]
    else:
        last = [
            _without_secrets,
            _on_one_line,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=_set_off),
        ]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
            }
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
            "nowhere": {"class": "logging.NullHandler"},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            **{name: {"level": "INFO"} for name in ("runs", "gates", "obversa_site")},
            # Every scanner of the internet writes one; the answer 400 says it all.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # What it says may hold addresses; what matters of it stands in the delivery log.
            "apprise": {"handlers": ["nowhere"], "propagate": False},
        },
    }


def clean_access_log() -> None:
    """Let daphne's own list of calls be as clean as ours: addresses hold what callers put there."""
    access = sys.modules.get("daphne.access")
    if access is None or hasattr(access.AccessLogGenerator, "is_clean"):
        return  # another server calls us

    class CleanLog(access.AccessLogGenerator):  # type: ignore[misc, name-defined]  # found at run time
        is_clean = True

        def write_entry(self, host: Any, date: Any, request: str, *told: Any, **more: Any) -> None:
            super().write_entry(host, date, _spelt(masked(request)), *told, **more)

    access.AccessLogGenerator = CleanLog  # type: ignore[attr-defined]  # daphne looks it up there
    cli = sys.modules.get("daphne.cli")
    if cli is not None:
        cli.AccessLogGenerator = CleanLog  # type: ignore[attr-defined]  # and there


def masked(text: str) -> str:
    """The text without keys, sign-in links and passwords."""
    for secret, shown in _SECRETS:
        text = secret.sub(shown, text)
    return text


def _without_secrets(_: Any, __: str, line: Line) -> Line:
    return {name: _masked(value) for name, value in line.items()}


def _masked(value: Any) -> Any:
    match value:
        case str():
            return masked(value[:LONGEST_ERROR])
        case dict():
            return {name: _masked(inner) for name, inner in value.items()}
        case list():
            return [_masked(inner) for inner in value]
    return value


def _on_one_line(_: Any, __: str, line: Line) -> Line:
    """Spell out what would begin a line of its own: paths and names in a message are strangers'."""
    for name, value in line.items():
        if isinstance(value, str):
            line[name] = _spelt(value)
    return line


def _spelt(text: str) -> str:
    return _CONTROL.sub(lambda mark: mark[0].encode("unicode_escape").decode(), text)


def _set_off(
    into: TextIO, told: tuple[type[BaseException], BaseException, TracebackType | None]
) -> None:
    """Write a traceback with every line set in: no text in it can look like a line of the log."""
    lines = traceback.TracebackException(*told, compact=True, limit=-MAX_FRAMES).format()
    for block in lines:
        into.writelines(
            f"\n    {_spelt(line[:LONGEST_ERROR])}"
            for line in masked(block).rstrip("\n").split("\n")
        )
