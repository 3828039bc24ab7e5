"""How a line of the log is written: for a person, or for a program that collects it."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def logging_config(style: str) -> dict[str, Any]:
    """Return the logging setting for `text` (one readable line) or `json` (one object a line)."""
    shared = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if style == "json":
        last: list[Any] = [
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(),
        ]
    else:
        last = [
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            )
        ]
    last.insert(0, _on_one_line)
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


def _on_one_line(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Spell out what would begin a line of its own: paths and names in a message are strangers'."""
    line["event"] = _CONTROL.sub(
        lambda mark: mark[0].encode("unicode_escape").decode(), str(line["event"])
    )
    return line
