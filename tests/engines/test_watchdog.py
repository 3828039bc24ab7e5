"""What a killed process leaves behind is ended (cases.md: killed parent, no process left)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runs.engines.command import CommandSpec, run_command
from runs.engines.watchdog import Watchdog
from tests.engines.test_command import is_gone

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 30
# A command with a child of its own; both tell their numbers.
COMMAND = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}\\n")
time.sleep(600)
"""
WORKER = """
import os, sys
from runs.engines.command import CommandSpec, run_command
from runs.engines.watchdog import watchdog
if sys.argv[2] == "forked":
    run_command(CommandSpec(argv=("true",)))
    if os.fork():
        os.wait()
        sys.exit()
watch = watchdog.watch
def watched(group):
    watch(group)
    open(sys.argv[1] + ".watched", "w").close()
watchdog.watch = watched
print(os.getpid(), flush=True)
run_command(CommandSpec(argv=(sys.executable, "-c", sys.argv[3], sys.argv[1])))
"""


def comes(claim: object) -> bool:
    """Whether it becomes true; it is looked at often, and waited for only as long as needed."""
    until = time.monotonic() + LIMIT
    while not claim():  # type: ignore[operator]  # a function without arguments
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("how", ["plain", "forked"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_commands_of_a_killed_worker_end_with_their_children(
    tmp_path: Path, how: str, number: signal.Signals
) -> None:
    told = tmp_path / "told"
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(told), how, COMMAND],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        assert comes(lambda: told.exists() and told.read_text().endswith("\n"))
        assert comes(Path(f"{told}.watched").exists)
        left = [int(part) for part in told.read_text().split()]
        assert not any(map(is_gone, left))
        os.kill(pid, number)
        assert comes(lambda: all(map(is_gone, left)))


def test_a_command_that_ended_is_watched_no_longer() -> None:
    result = run_command(CommandSpec(argv=(sys.executable, "-c", "print('fine')")))

    assert result.exit_code == 0
    from runs.engines.watchdog import watchdog

    assert watchdog._groups == set()


def test_one_that_is_gone_is_replaced_and_told_of_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[int] = []
    spawn = os.posix_spawn

    def noted(*given: Any, **more: Any) -> int:
        begun.append(spawn(*given, **more))
        return begun[-1]

    monkeypatch.setattr(os, "posix_spawn", noted)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as sleeper:
        dog = Watchdog()
        dog.watch(sleeper.pid)
        os.kill(begun[0], signal.SIGKILL)
        os.waitpid(begun[0], 0)
        dog.watch(sleeper.pid)
        assert len(begun) == 2
        assert sleeper.poll() is None
        dog._drop()
        assert comes(lambda: sleeper.poll() is not None)
        assert sleeper.returncode == -signal.SIGTERM
