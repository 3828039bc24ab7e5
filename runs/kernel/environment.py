"""A running copy of what is worked on: brought up for a workspace, taken down after (E130)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol


class Running(Protocol):
    """What is up: where it answers, and the variables that say so to commands and engines."""

    @property
    def url(self) -> str | None:
        """Where it answers."""

    @property
    def env(self) -> Mapping[str, str]:
        """Set beneath the job that it was brought up for (runs.md R74)."""

    def down(self, cancel: Any) -> Awaitable[None] | None:
        """Take it down, whatever became of the job."""


class Environment(Protocol):
    """Brings one up; `workspace` has a `dir` and, in a worktree, a `branch` to name it after."""

    @property
    def name(self) -> str:
        """What people call it."""

    def up(self, workspace: Any, cancel: Any) -> Running | Awaitable[Running]:
        """Bring it up for this workspace; `cancel.is_set()` says when to stop."""
