"""Web and scheduler processes that die by SIGKILL after a commit, before anything is sent.

A process of its own that loads the product once and forks: each child does one thing, told by a
line of JSON, and dies where it would send. The answer is the child's exit code, minus the signal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import django

ROOT = Path(__file__).resolve().parents[2]


class Mortals:
    """The suite's end of it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.mortals"],
            cwd=ROOT,
            env=os.environ | {"DJANGO_SETTINGS_MODULE": "obversa_site.settings"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, what: str, **given: str) -> bool:
        """Let one of them do this; True when it died of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **given}) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())
        assert code in (0, -signal.SIGKILL), f"{what} {given} ended with {code}"
        return bool(code)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _child(task: dict[str, str]) -> None:
    from runs import dispatch, services, sweep
    from tests.faults import people, suite

    suite.be_hasty()
    door: Any = dispatch
    door.send = door.wake = _die
    match task["do"]:
        case "start":
            services.start_run(task["workflow"], {}, actor=people.WHO, idempotency_key=task["key"])
        case "answer":
            people.answer_all(UUID(task["run"]))
        case "sweep":
            sweep.sweep()


def main() -> None:
    django.setup()
    from runs import registry

    registry.load()
    for line in sys.stdin:
        if pid := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)  # noqa: T201  the suite reads it
            continue
        try:
            _child(json.loads(line))
        except BaseException:  # noqa: BLE001  whatever it was, the child ends here
            sys.excepthook(*sys.exc_info())
            os._exit(70)
        os._exit(0)


if __name__ == "__main__":
    main()
