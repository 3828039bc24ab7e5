"""Celery workers as processes of their own, each with its children in one process group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Workers:
    """As many as the suite wants; every one that was started is gone at the end."""

    def __init__(self, broker_url: str, log: Path) -> None:
        self._environment = os.environ | {
            "CELERY_BROKER_URL": broker_url,
            "OBVERSA_TEST_MORTAL": "1",
        }
        self._log = log
        self._alive: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0

    def start(self, count: int) -> None:
        for _ in range(count):
            self._started += 1
            with self._log.open("ab") as log:
                process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "celery", "-A", "tests.faults.app", "worker"),
                        *("--concurrency", "2", "--loglevel", "WARNING"),
                        *("--hostname", f"faults-{self._started}@%h"),
                        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                    ],
                    cwd=ROOT,
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._alive[process.pid] = process

    @property
    def alive(self) -> int:
        return len(self._alive)

    def kill(self, pid: int) -> None:
        """The worker and its children, without a word."""
        process = self._alive.pop(pid)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        process.wait(20)

    def stall(self, pid: int) -> None:
        os.killpg(self._alive[pid].pid, signal.SIGSTOP)

    def wake(self, pid: int) -> None:
        os.killpg(self._alive[pid].pid, signal.SIGCONT)

    def close(self) -> None:
        for pid in list(self._alive):
            self.kill(pid)

    def tail(self) -> str:
        """The last that they said."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""
