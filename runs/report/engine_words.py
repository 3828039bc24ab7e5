"""Words for what engines did in a step: for reports, and for the lines of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runs.kernel.numbers import count_of
from runs.kernel.spending import is_reported
from runs.report.phrases import NOTE, Told, after
from runs.report.text import Wire, facts, joined, many, text
from runs.report.usage import tokens

# What happened in two or three words, per kind.
WORDS: Final[Mapping[str, str]] = {
    "engine:usage": "model asked",
    "engine:tool": "model's tool",
    "job:rework": "rework begun",
    "interaction:checkpoint": "conversation kept",
    "budget:set-aside": "tokens set aside",
    "budget:freed": "tokens freed",
}
# What only repeats the lines around it.
QUIET: Final = frozenset(
    {"job:rework", "interaction:checkpoint", "budget:set-aside", "budget:freed"}
)


def said(kind: str, given: Mapping[str, Any]) -> str:
    """What an event of one of these kinds tells beside its kind; nothing it holds is trusted."""
    match kind:
        case "engine:usage":
            return _usage(given)
        case "engine:tool":
            return joined(*(text(given.get(name)) for name in ("name", "phase", "target")))
        case "budget:set-aside":
            return many(count_of(given.get("tokens")), "token")
    return ""


def _usage(given: Mapping[str, Any]) -> str:
    usage = facts(given.get("usage"))
    used = tokens(usage) if is_reported(usage) else "usage unknown"
    failed = "failed" if given.get("failed") is True else ""
    who = joined(text(given.get("role")), text(given.get("stage")))
    return joined(joined(text(given.get("model")) or "a model", used, failed), who, by=", ")


def _told(kind: str) -> Callable[[Wire], Told]:
    return lambda event: (NOTE, after(WORDS[kind], said(kind, event)))


# The seeds' own kinds have words of theirs.
TOLD: Final[Mapping[str, Callable[[Wire], Told]]] = {
    kind: _told(kind) for kind in ("job:rework", "budget:set-aside", "budget:freed")
}
