"""`manage.py up` as people start it: a process with pages, worker and sweeper."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    gone = ("DATABASE_URL", "CELERY_BROKER_URL", "CHANNEL_REDIS_URL", "OBVERSA_SECRET_KEY")
    kept = {name: value for name, value in os.environ.items() if name not in gone}
    return kept | {
        "OBVERSA_HOME": str(home),
        "OBVERSA_WORKFLOWS": "tests.services.flow",
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
    }


@contextmanager
def up(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A started `up` and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (home / "up.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(port)],
            cwd=ROOT,
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Stop with"):
                break
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate(timeout=20)


def start(home: Path, workflow: str) -> None:
    command = [sys.executable, "manage.py", "start_run", workflow]
    subprocess.run(command, cwd=ROOT, env=environment(home), check=True, capture_output=True)


def until(is_so: Callable[[], Any], home: Path) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, (home / "up.log").read_text()[-4000:]
        time.sleep(0.05)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=10) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def statuses(home: Path) -> dict[str, str]:
    return dict(select(home, "SELECT name, status FROM runs_step"))


def events(home: Path) -> list[str]:
    return [kind for (kind,) in select(home, "SELECT kind FROM runs_event ORDER BY seq")]


def select(home: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(home / "obversa.sqlite3")) as database:
        return database.execute(query).fetchall()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told_to_and_lets_the_running_step_finish(
    home: Path, stop: signal.Signals
) -> None:
    with up(home) as (process, address):
        until(lambda: answers(address), home)
        start(home, "slow")
        until((home / "begun").exists, home)
        process.send_signal(stop)
        time.sleep(0.5)
        assert process.poll() is None
        (home / "go-on").touch()
        assert process.wait(30) == 0

    assert statuses(home)["build"] == "passed"
    assert "step:lost" not in events(home)


def test_killed_in_the_middle_of_a_step_it_goes_on_at_the_next_start(home: Path) -> None:
    with up(home) as (process, _):
        start(home, "slow")
        until((home / "begun").exists, home)
        process.kill()
    (home / "go-on").touch()

    with up(home) as (process, _):
        until(lambda: statuses(home)["ok"] == "waiting", home)
        process.terminate()
        assert process.wait(30) == 0

    kinds = events(home)
    assert kinds.count("step:lost") == 1
    assert kinds.count("callback-requested") == 1
    assert (home / "effects.txt").read_text().splitlines() == ["slow/build/1.1", "slow/build/1.2"]


def test_a_second_one_on_the_same_home_is_refused(home: Path) -> None:
    with up(home):
        second = subprocess.run(
            [sys.executable, "manage.py", "up", "--port", "0"],
            cwd=ROOT,
            env=environment(home),
            capture_output=True,
            text=True,
            check=False,
        )

    assert second.returncode != 0
    assert "Another `up` uses" in second.stderr
