"""The command engine: one argument list, no shell, a time limit and an honest result.

`CommandResult` holds the raw streams. `reason` and `evidence` are what may be recorded: they are
scrubbed first and cut second, so that a cut never leaves half a secret (runs.md R58, R59).
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runs.engines.process import run_process
from runs.engines.scrub import scrub, secret_values
from runs.kernel.commandline import COMMAND_TIMEOUT_MS, parse_command
from runs.kernel.jsonable import JSONValue

__all__ = [
    "CommandResult",
    "CommandSpec",
    "combined_output",
    "command_name",
    "evidence",
    "met",
    "parse_command",
    "reason",
    "run_command",
    "tail",
]

GRACE_MS: Final = 5_000
OUTPUT_CAP: Final = 16 * 1024 * 1024
STREAM_LIMIT: Final = 4_000
REASON_LIMIT: Final = 3_000
NAME_LIMIT: Final = 200
# What the service itself is given and an author's command has no use for.
SERVICE_VARIABLES: Final = frozenset(
    {
        "OBVERSA_SECRET_KEY",
        "OBVERSA_SECRET_KEY_FALLBACKS",
        "DATABASE_URL",
        "CELERY_BROKER_URL",
        "CHANNEL_REDIS_URL",
        "EMAIL_URL",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """What to run, where, and within which limits."""

    argv: tuple[str, ...]
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    """Names of this process's variables that the command must not see."""
    timeout_ms: int = COMMAND_TIMEOUT_MS
    grace_ms: int = GRACE_MS
    output_cap: int = OUTPUT_CAP
    """Bytes kept of each stream; the rest is read and dropped."""

    def environment(self) -> dict[str, str]:
        """The process's environment without `unset`, overlaid by `env`."""
        inherited = {name: value for name, value in os.environ.items() if name not in self.unset}
        return {**inherited, **self.env}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How the command ended; `exit_code` is None when it did not run or did not exit."""

    spec: CommandSpec
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0
    timed_out: bool = False
    cancelled: bool = False
    signal: int | None = None
    spawn_error: str | None = None
    truncated: bool = False

    def to_json(self) -> dict[str, JSONValue]:
        """The `command` part of an outcome (runs.md R20)."""
        command, *args = [scrub(part, _secrets(self.spec)) for part in self.spec.argv]
        wire: dict[str, JSONValue] = {
            "command": command,
            "args": list(args),
            "exitCode": self.exit_code,
            "durationMs": self.duration_ms,
        }
        if self.timed_out:
            wire["timedOut"] = True
        return wire


def run_command(
    spec: CommandSpec, *, cancelled: Callable[[], bool] = lambda: False
) -> CommandResult:
    """Run the command to its end, its time limit or a cancel. Never raises for what it does."""
    started = time.monotonic()
    try:
        ended = run_process(
            spec.argv,
            cwd=spec.cwd,
            env=spec.environment(),
            timeout_ms=spec.timeout_ms,
            grace_ms=spec.grace_ms,
            output_cap=spec.output_cap,
            cancelled=cancelled,
        )
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return CommandResult(spec=spec, spawn_error=text, duration_ms=_since(started))
    return CommandResult(
        spec=spec,
        exit_code=ended.exit_code,
        stdout=ended.stdout.text(),
        stderr=ended.stderr.text(),
        duration_ms=_since(started),
        timed_out=ended.timed_out,
        cancelled=ended.cancelled,
        signal=ended.signal,
        truncated=ended.stdout.truncated or ended.stderr.truncated,
    )


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def met(result: CommandResult) -> bool:
    """Only exit 0 within the time limit counts (runs.md R53, R56)."""
    return result.exit_code == 0 and not result.timed_out and not result.cancelled


def reason(result: CommandResult, *, capture: bool = False) -> str:
    """One sentence on how it ended; with `capture` the end of its output follows (R56-R59)."""
    sentence = f"`{command_name(result.spec)}` {_ending(result)}."
    if not capture:
        return sentence
    output = combined_output(result)
    return f"{sentence}\n{tail(output, REASON_LIMIT)}" if output else sentence


def command_name(spec: CommandSpec) -> str:
    """The command on one line, scrubbed, for people to recognise it by."""
    name = " ".join(scrub(shlex.join(spec.argv), _secrets(spec)).split())
    return name if len(name) <= NAME_LIMIT else f"{name[: NAME_LIMIT - 1]}…"


def _ending(result: CommandResult) -> str:
    if result.spawn_error is not None:
        return f"could not be started: {result.spawn_error}"
    if result.timed_out:
        return f"ran past its limit of {result.spec.timeout_ms} ms"
    if result.cancelled:
        return "was stopped because the run was cancelled"
    if result.signal is not None:
        return f"was ended by {_signal_name(result.signal)}"
    if result.exit_code is None:
        return "ended and nobody saw how"
    return f"exited {result.exit_code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def evidence(result: CommandResult) -> str | None:
    """The output of a failed command: exit code and both streams; None for a met one."""
    if met(result):
        return None
    secrets = _secrets(result.spec)
    ending = _ending(result) if result.exit_code is None or result.timed_out else None
    parts = [f"exit code: {'none' if result.exit_code is None else result.exit_code}"]
    if ending:
        parts[0] += f" ({ending})"
    for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        parts.append(f"{name}:\n{tail(scrub(stream, secrets), STREAM_LIMIT)}".rstrip("\n"))
    return "\n".join(parts)


def combined_output(result: CommandResult) -> str:
    """Both streams, scrubbed and uncut: stdout, then stderr."""
    streams = [part for part in (result.stdout, result.stderr) if part]
    joined = "\n".join(part.rstrip("\n") for part in streams)
    return scrub(joined, _secrets(result.spec))


def tail(text: str, limit: int) -> str:
    """The last `limit` characters, with a marker in front when something is missing."""
    if len(text) <= limit:
        return text
    return f"[{len(text) - limit} characters cut] {text[-limit:]}"


def _secrets(spec: CommandSpec) -> list[str]:
    return secret_values(spec.environment(), spec.env)
