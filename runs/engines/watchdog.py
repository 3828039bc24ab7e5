"""A small process that outlives this one just long enough to end the commands it leaves behind.

A worker that is killed cannot stop its commands, and a command that goes on unseen would be at
work still when somebody lets its step run again. The watchdog reads from a pipe which groups run;
the pipe ends with the last process that holds it, however that process ends. A process that is
killed between the start of a command and telling of it leaves that one behind.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Final

# Reads lines `+<group>` and `-<group>`; at the end asks what is left to stop, and kills it later.
_PROGRAM: Final = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    group = int(line[1:])
    (groups.add if line[0] == "+" else groups.discard)(group)

def alive():
    return [group for group in groups if sends(group, 0)]

def sends(group, number):
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True

for group in groups:
    sends(group, signal.SIGTERM)
until = time.monotonic() + 5
while alive() and time.monotonic() < until:
    time.sleep(0.05)
for group in groups:
    sends(group, signal.SIGKILL)
"""


class Watchdog:
    """Started with the first command of a process; started again when somebody killed it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: int | None = None
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """End this group if this process ends before it says otherwise."""
        with self._lock:
            self._groups.add(group)
            self._say(f"+{group}\n")

    def forget(self, group: int) -> None:
        """The group needs no watching any more; to be said before its number is free again."""
        with self._lock:
            self._groups.discard(group)
            self._say(f"-{group}\n")

    def _say(self, line: str) -> None:
        try:
            if self._pipe is None:
                self._start()
                return
            os.write(self._pipe, line.encode())
        except OSError:
            # It is gone: a new one is told of everything that runs.
            self._drop()
            with contextlib.suppress(OSError):
                self._start()

    def _start(self) -> None:
        if not sys.executable:
            # An interpreter inside another program: there is nothing to start.
            return
        reading, writing = os.pipe()
        try:
            # Not by subprocess: nobody here waits for it, and it must not end with our group.
            os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        self._pipe = writing
        os.write(writing, "".join(f"+{group}\n" for group in sorted(self._groups)).encode())

    def _drop(self) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.close(self._pipe)
        self._pipe = None

    def after_fork(self) -> None:
        """A forked child has commands of its own, and must not keep its parent's pipe open."""
        self._lock = threading.Lock()
        self._groups = set()
        self._drop()


watchdog: Final = Watchdog()
os.register_at_fork(after_in_child=watchdog.after_fork)
