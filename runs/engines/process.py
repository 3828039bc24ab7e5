"""Runs one child process as a group of its own: read, limit, stop, and never hang (POSIX)."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from runs.engines.watchdog import watchdog

_TICK: Final = 0.05
_CHUNK: Final = 65_536
# How long the pipes may stay open after the command itself has ended.
_DRAIN: Final = 0.25
# A process that ignores SIGKILL hangs in the system; it must not take the worker with it.
_GIVE_UP: Final = 5.0
# Around a gap in the output this much is dropped, so that half a secret is never kept.
_SEAM: Final = 4096


# The process groups that run now, by their leaders.
_running: Final[set[int]] = set()


def end_all() -> None:
    """Kill every command this process runs: it is about to end and nobody will look after them."""
    for leader in tuple(_running):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


class Capture:
    """Keeps the beginning and the end of a stream, at most `cap` bytes of it."""

    def __init__(self, cap: int) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._head_cap = cap // 2
        self._tail_cap = cap - cap // 2
        self._seam = min(_SEAM, cap // 8)
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(chunk)
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        # Trimmed only now and then: cutting the front of a long array copies it.
        if len(self._tail) > 2 * self._tail_cap + _CHUNK:
            del self._tail[: len(self._tail) - self._tail_cap]

    @property
    def truncated(self) -> bool:
        """Whether the stream was longer than what is kept."""
        return self.total > self._head_cap + self._tail_cap

    def text(self) -> str:
        """What was kept, with a line that says how much is missing."""
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = bytes(self._head), bytes(self._tail[-self._tail_cap :])
        end = head.rfind(b"\n", max(0, len(head) - self._seam))
        head = head[: end + 1] if end >= 0 else head[: -self._seam or None]
        start = tail.find(b"\n", 0, self._seam)
        tail = tail[start + 1 :] if start >= 0 else tail[self._seam :]
        left_out = self.total - len(head) - len(tail)
        gap = f"\n[{left_out} bytes left out]\n"
        return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended; exit code and signal are both None when nobody can tell."""

    exit_code: int | None
    signal: int | None
    stdout: Capture
    stderr: Capture
    timed_out: bool
    cancelled: bool


class _Group:
    """One running process group and the pipes that come out of it."""

    def __init__(
        self, argv: Sequence[str], cwd: Path | None, env: Mapping[str, str], output_cap: int
    ) -> None:
        self.process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - that is the job
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        _running.add(self.process.pid)
        watchdog.watch(self.process.pid)
        self.stdout, self.stderr = Capture(output_cap), Capture(output_cap)
        self._pipes = selectors.DefaultSelector()
        for pipe, capture in (
            (self.process.stdout, self.stdout),
            (self.process.stderr, self.stderr),
        ):
            if pipe is None:
                continue
            os.set_blocking(pipe.fileno(), False)
            self._pipes.register(pipe, selectors.EVENT_READ, capture)
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.has_ended = False

    @property
    def is_open(self) -> bool:
        return bool(self._pipes.get_map())

    def pump(self, seconds: float) -> None:
        """Read what is there, waiting at most this long for it."""
        if not self.is_open:
            time.sleep(min(seconds, 0.005))
            return
        for key, _ in self._pipes.select(max(0.0, seconds)):
            pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]  # only pipes are registered
            try:
                chunk = os.read(pipe.fileno(), _CHUNK)
            except BlockingIOError:
                continue
            if chunk:
                key.data.feed(chunk)
            else:
                self._pipes.unregister(pipe)
                pipe.close()

    def look(self) -> bool:
        """Whether the command itself has ended.

        It is left unreaped: while it is a zombie nobody else can get its number, so a signal to
        the group cannot reach a stranger.
        """
        if self.has_ended:
            return True
        try:
            seen = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else in this process reaped it; an unknown end is not exit 0.
            self.has_ended = True
            return True
        if seen is not None:
            self.has_ended = True
            if seen.si_code == os.CLD_EXITED:
                self.exit_code = seen.si_status
            else:
                self.signal = seen.si_status
        return self.has_ended

    def send(self, number: signal.Signals) -> None:
        # PermissionError is how macOS answers for a group that holds only zombies.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Kill what is left of the group, take what it had written, and reap."""
        self.send(signal.SIGKILL)
        until = time.monotonic() + _DRAIN
        while self.is_open and (left := until - time.monotonic()) > 0:
            self.pump(left)
        for key in list(self._pipes.get_map().values()):
            self._pipes.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]  # only pipes are registered
        self._pipes.close()
        # Before it is reaped: its number may be a stranger's afterwards.
        _running.discard(self.process.pid)
        watchdog.forget(self.process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_GIVE_UP)


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path | None,
    env: Mapping[str, str],
    timeout_ms: int,
    grace_ms: int,
    output_cap: int,
    cancelled: Callable[[], bool],
) -> Ended:
    """Run to the end, to the time limit or to the cancel; raises OSError when it cannot start."""
    group = _Group(argv, cwd, env, output_cap)
    deadline = time.monotonic() + timeout_ms / 1000
    timed_out = was_cancelled = False
    try:
        while not group.look():
            left = deadline - time.monotonic()
            if left <= 0 or (was_cancelled := cancelled()):
                timed_out = not was_cancelled
                _stop(group, grace_ms / 1000)
                break
            group.pump(min(_TICK, left))
        else:
            _drain(group, time.monotonic() + _DRAIN)
    finally:
        group.close()
    return Ended(
        exit_code=group.exit_code,
        signal=group.signal,
        stdout=group.stdout,
        stderr=group.stderr,
        timed_out=timed_out,
        cancelled=was_cancelled,
    )


def _drain(group: _Group, until: float) -> None:
    while group.is_open and (left := until - time.monotonic()) > 0:
        group.pump(min(_TICK, left))


def _stop(group: _Group, grace: float) -> None:
    """Ask the whole group to stop, wait out the grace, then kill it."""
    group.send(signal.SIGTERM)
    until = time.monotonic() + grace
    # An open pipe means that a member still lives, even when the command itself has ended.
    while (not group.look() or group.is_open) and (left := until - time.monotonic()) > 0:
        group.pump(min(_TICK, left))
    group.send(signal.SIGKILL)
    until = time.monotonic() + _GIVE_UP
    while not group.look() and (left := until - time.monotonic()) > 0:
        group.pump(min(_TICK, left))
