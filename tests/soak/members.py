"""A process that may be killed and comes back: one server, web process, worker, beat or nginx."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 90.0
# How long one that was told to stop may take; then it is killed, and that is told.
STOPPING_SECONDS = 30.0


class NotReady(RuntimeError):
    """A process that was started does not do its work."""


@dataclass(kw_only=False)
class Member:
    """One process with its children; `ready` says whether it does its work."""

    name: str
    command: list[str]
    log: Path
    environment: Mapping[str, str] | None = None
    folder: Path = ROOT
    user: str | None = None
    ready: Callable[[], bool] = lambda: True
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    stopping: signal.Signals = signal.SIGTERM
    overstayed: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it in a session of its own: what is typed at the terminal is not for it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=None if self.environment is None else dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
        self.starts += 1

    def until_ready(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it does its work; raises NotReady with its last words."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.lives:
                raise NotReady(f"{self.name} ended at once.\n{self.tail()}")
            if self.ready():
                return
            time.sleep(0.1)
        raise NotReady(f"{self.name} is not ready after {seconds} s.\n{self.tail()}")

    def signal(self, number: int, pids: list[int] | None = None) -> None:
        """Send a signal to it and to everything it has started."""
        for pid in family(self.pid) if pids is None else pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> list[int]:
        """Stop it and its children in the middle of what they do; the pids that are stopped."""
        pids = family(self.pid)
        self.signal(signal.SIGSTOP, pids)
        return pids

    def kill(self) -> None:
        """End it and its children, without a word."""
        if self.process is None:
            return
        pids = family(self.pid)
        self.signal(signal.SIGKILL, pids)
        self.process.wait(20)
        end = time.monotonic() + 20
        while any(map(_exists, pids)) and time.monotonic() < end:
            time.sleep(0.02)

    def ask_to_stop(self) -> None:
        """Tell the process itself to stop in good order, and wait; its children hear it from it."""
        if not self.lives:
            return
        self.told()
        self.wait_for_end()

    def told(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, self.stopping)

    def wait_for_end(self, seconds: float = STOPPING_SECONDS) -> None:
        """Wait until it has ended; one that does not is killed, and that is noted."""
        assert self.process is not None
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.overstayed.append(f"{self.name} did not stop within {seconds:.0f} s")
            self.kill()

    def end(self) -> None:
        """For good, however it is."""
        if self.process is not None:
            self.signal(signal.SIGCONT)
            self.kill()

    def tail(self, characters: int = 3000) -> str:
        """The last that it said."""
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""


def family(pid: int) -> list[int]:
    """A process and all that descend from it, whatever session they are in; itself first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                # The name may hold anything; what follows its last bracket does not.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _exists(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
