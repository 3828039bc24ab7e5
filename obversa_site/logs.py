"""How a line of the log is written: for a person, or for a program that collects it."""

from __future__ import annotations

from typing import Any

import structlog


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
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            **{name: {"level": "INFO"} for name in ("runs", "gates", "obversa_site")},
            # Every scanner of the internet writes one; the answer 400 says it all.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
        },
    }
