"""A command as an argument list: no shell reads it (runs.md R54, R60, R61)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from runs.kernel.errors import LoopError
from runs.kernel.redact import redact

COMMAND_TIMEOUT_MS: Final = 600_000
_QUOTES: Final = "\"'"
_SHELL: Final = "|&;<>$`()"


def parse_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """The argument list of a command; raises a VALIDATION error for what would need a shell."""
    if isinstance(command, str):
        if found := next((mark for mark in command if mark in _QUOTES), None):
            raise _refused(command, f"it holds the quote character {found}")
        if found := next((mark for mark in command if mark in _SHELL), None):
            raise _refused(command, f"it holds {found}, and no shell reads it")
        argv = tuple(command.split())
    else:
        argv = tuple(command) if isinstance(command, Sequence) else (command,)
        if any(not isinstance(part, str) for part in argv):
            raise _refused(command, "every argument must be a string")
    if not argv or not argv[0].strip():
        raise _refused(command, "it names no executable")
    if any("\0" in part for part in argv):
        raise _refused(command, "an argument holds a NUL character")
    return argv


def _refused(command: object, why: str) -> LoopError:
    return LoopError(
        "VALIDATION",
        f"The command {redact(str(command))!r} cannot be run: {why}. "
        "Write it as a list with one entry per argument.",
    )
