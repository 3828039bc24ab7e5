"""`manage.py up` as people start it: a process with pages, worker and sweeper."""

from __future__ import annotations

import json
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
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.timeout(600)


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
        # What it says it says when it is so: nobody has to wait and try again.
        assert answers(address)
        start(home, "slow")
        until((home / "begun").exists, home)
        process.send_signal(stop)
        time.sleep(0.5)
        assert process.poll() is None
        (home / "go-on").touch()
        assert process.wait(30) == 0

    assert statuses(home)["build"] == "passed"
    assert "step:lost" not in events(home)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_told_twice_it_stops_at_once_and_the_step_is_found_at_the_next_start(
    home: Path, stop: signal.Signals
) -> None:
    with up(home) as (process, _):
        start(home, "slow")
        until((home / "begun").exists, home)
        process.send_signal(stop)
        until(lambda: "Once more stops at once" in (home / "up.log").read_text(), home)
        assert process.poll() is None
        process.send_signal(stop)
        assert process.wait(30) == 128 + stop
    (home / "go-on").touch()

    with up(home) as (process, _):
        until(lambda: statuses(home)["ok"] == "waiting", home)

    assert events(home).count("step:lost") == 1


def test_a_port_that_is_taken_is_said_and_nothing_is_started(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = subprocess.run(
            [sys.executable, "manage.py", "up", "--port", str(taken.getsockname()[1])],
            cwd=ROOT,
            env=environment(home),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert ended.returncode == 1
    assert "Use another --port." in ended.stderr
    assert "Sign in" not in ended.stdout


def test_a_body_that_is_too_long_is_dropped_as_it_comes_and_refused_in_words(home: Path) -> None:
    in_pieces = (b"x" * 100_000 for _ in range(50))
    with up(home) as (_, address):
        for body, chunked in ((b"x" * 5_000_000, False), (in_pieces, True)):
            headers = {"Transfer-Encoding": "chunked"} if chunked else {}
            with closing(HTTPConnection(urlsplit(address).netloc, timeout=60)) as line:
                line.request("POST", "/api/v1/requests", body, headers, encode_chunked=chunked)
                response = line.getresponse()
                told = json.loads(response.read())
                assert (response.status, told["error"]["code"]) == (413, "too-large")
                # The connection is good for what comes next.
                line.request("GET", "/healthz")
                assert line.getresponse().status == 200
    assert "Traceback" not in (home / "up.log").read_text()


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
