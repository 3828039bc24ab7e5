"""Spans of what is done for a run, where tracing is switched on; nothing at all otherwise.

Who makes the spans is told by the site (obversa_site/telemetry.py); no library of it is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Final, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Span(Protocol):
    """What is under way."""

    def note(self, **facts: Any) -> None:
        """Add facts: ids, places and numbers, never what somebody wrote."""

    def call(self, name: str) -> None:
        """Give it another name."""

    def fail(self, what: str) -> None:
        """Say that it failed, by a word of ours or the name of an error."""


class Tracer(Protocol):
    """Makes spans."""

    def span(
        self, name: str, facts: Mapping[str, Any], parent: str = "", kind: str = "internal"
    ) -> AbstractContextManager[Span]:
        """A span as long as the block."""

    def here(self) -> str:
        """The current span as a W3C `traceparent`; empty outside of one."""


class _NoSpan:
    def note(self, **facts: Any) -> None:
        pass

    def call(self, name: str) -> None:
        pass

    def fail(self, what: str) -> None:
        pass


_NOTHING: Final = nullcontext(_NoSpan())
_used: list[Tracer] = []


def use(tracer: Tracer | None) -> None:
    """Let this tracer make the spans of this process from now on; None for no spans."""
    _used[:] = [] if tracer is None else [tracer]


def used() -> Tracer | None:
    """Who makes the spans, if anybody does."""
    return _used[0] if _used else None


def span(
    name: str, *, parent: str = "", kind: str = "internal", **facts: Any
) -> AbstractContextManager[Span]:
    """A span as long as the block: below the current one, or below `parent` of another trace."""
    return _used[0].span(name, facts, parent, kind) if _used else _NOTHING


def within(name: str, about: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Do all of a function in a span; its first argument is the id of what it is `about`."""

    def around(act: Callable[P, R]) -> Callable[P, R]:
        @wraps(act)
        def acting(*args: P.args, **kwargs: P.kwargs) -> R:
            if not _used:
                return act(*args, **kwargs)
            facts = {about: str(args[0])} if args else {}
            with span(name, **facts):
                return act(*args, **kwargs)

        return acting

    return around


def here() -> str:
    """The current span as a W3C `traceparent`; empty without tracing."""
    return _used[0].here() if _used else ""
