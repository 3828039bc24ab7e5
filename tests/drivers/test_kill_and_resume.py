"""A process that is killed, and the one that takes its record up (runs.md 14.2, gates.md 11)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gates import local_callbacks
from runs.drivers.callbacks import direct_router
from runs.drivers.jsonl import read_record
from tests.drivers.script import ran

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60


def start(folder: Path, *words: str, kill_at: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.drivers.script", str(folder), *words],
        cwd=ROOT,
        env={**os.environ, "KILL_AT": kill_at},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def script(folder: Path, *words: str, kill_at: str = "") -> int:
    process = start(folder, *words, kill_at=kill_at)
    _, wrong = process.communicate(timeout=LIMIT)
    assert wrong == ""
    return process.returncode


def client(folder: Path) -> Any:
    return local_callbacks(folder / "store", "release")


def answer(folder: Path, response: Any) -> None:
    """As a host does that was started for nothing else (gates.md G121)."""
    (request,) = client(folder).list_pending()
    assert direct_router(client(folder), request, "host", lambda _request: response).ok


def asked(folder: Path) -> list[str]:
    history = client(folder).history()
    return [event["request"]["gateId"] for event in history if "request" in event]


def kinds(folder: Path) -> Counter[str]:
    return Counter(event.kind for event in read_record(folder / "run.jsonl").events)


def test_an_interrupted_step_is_asked_about_once_however_often_it_is_resumed(
    tmp_path: Path,
) -> None:
    assert script(tmp_path, kill_at="two#1") == -signal.SIGKILL
    assert ran(tmp_path) == ["one", "two"]
    for _ in range(3):
        assert script(tmp_path) == 75

    (request,) = client(tmp_path).list_pending()
    assert "**two** was interrupted" in request.decision_text
    assert asked(tmp_path) == ["reconcile:release/two"]
    assert ran(tmp_path) == ["one", "two"]
    assert kinds(tmp_path)["step:lost"] == 1


def test_finished_means_that_it_is_not_run_again(tmp_path: Path) -> None:
    script(tmp_path, kill_at="two#1")
    script(tmp_path)
    answer(tmp_path, {"action": "finished"})
    assert script(tmp_path) == 75
    answer(tmp_path, {"approved": True})
    assert script(tmp_path) == 0

    assert ran(tmp_path) == ["one", "two", "three"]


def test_run_again_means_in_this_very_session(tmp_path: Path) -> None:
    script(tmp_path, kill_at="two#1")
    script(tmp_path)
    answer(tmp_path, {"action": "run-again"})
    assert script(tmp_path) == 75

    assert ran(tmp_path) == ["one", "two", "two"]
    assert asked(tmp_path) == ["reconcile:release/two", "ok"]


def test_a_second_interruption_is_a_second_question(tmp_path: Path) -> None:
    script(tmp_path, kill_at="two#1")
    script(tmp_path)
    (first,) = client(tmp_path).list_pending()
    answer(tmp_path, {"action": "run-again"})
    assert script(tmp_path, kill_at="two#1") == -signal.SIGKILL
    assert script(tmp_path) == 75

    (second,) = client(tmp_path).list_pending()
    assert second.request_id != first.request_id
    assert ran(tmp_path) == ["one", "two", "two"]
    answer(tmp_path, {"action": "fail"})
    assert script(tmp_path) == 1


def test_a_step_that_is_safe_to_repeat_simply_runs_again(tmp_path: Path) -> None:
    assert script(tmp_path, "safe", kill_at="two#1") == -signal.SIGKILL
    assert script(tmp_path, "safe") == 75

    assert ran(tmp_path) == ["one", "two", "two"]
    assert asked(tmp_path) == ["ok"]


def test_a_step_that_had_not_begun_is_not_asked_about(tmp_path: Path) -> None:
    assert script(tmp_path, kill_at="dag:start") == -signal.SIGKILL
    assert script(tmp_path) == 75

    assert ran(tmp_path) == ["one", "two"]
    assert asked(tmp_path) == ["ok"]


@pytest.mark.parametrize("kind", ["run:start", "dag:node", "job:end", "callback-requested"])
def test_wherever_it_dies_the_run_comes_to_its_end(tmp_path: Path, kind: str) -> None:
    assert script(tmp_path, "safe", kill_at=kind) == -signal.SIGKILL
    for _ in range(2):
        assert script(tmp_path, "safe") == 75
    assert asked(tmp_path) == ["ok"]
    answer(tmp_path, {"approved": True})
    assert script(tmp_path, "safe") == 0

    assert Counter(ran(tmp_path)) == {"one": 1, "two": 1, "three": 1}


def test_a_send_back_that_was_accepted_is_not_lost(tmp_path: Path) -> None:
    assert script(tmp_path, "reviewed", kill_at="dag:kickback") == -signal.SIGKILL
    assert ran(tmp_path) == ["build", "check"]
    assert script(tmp_path, "reviewed") == 1

    # One send-back is allowed, over both sessions together (R247, R249).
    assert ran(tmp_path) == ["build", "check", "build", "check"]
    assert (tmp_path / "reviews").read_text().splitlines() == ["nothing", "no 1"]
    told = [
        event.fields["accepted"]
        for event in read_record(tmp_path / "run.jsonl").events
        if event.kind == "dag:kickback"
    ]
    assert told == [True, False]


def test_a_second_attempt_that_was_interrupted_is_never_taken_for_the_first(
    tmp_path: Path,
) -> None:
    assert script(tmp_path, "reviewed", kill_at="build#2") == -signal.SIGKILL
    assert script(tmp_path, "reviewed") == 1

    assert ran(tmp_path) == ["build", "check", "build", "build", "check"]
    assert (tmp_path / "reviews").read_text().splitlines() == ["nothing", "no 1"]


def test_a_killed_waiter_leaves_its_question_and_nothing_else(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        (request,) = client(tmp_path).list_pending()
        process.kill()
        assert process.wait(LIMIT) == -signal.SIGKILL

    assert script(tmp_path) == 75
    (same,) = client(tmp_path).list_pending()
    assert same.request_id == request.request_id
    assert asked(tmp_path) == ["ok"]
    answer(tmp_path, {"approved": True})
    assert script(tmp_path, "wait") == 0
    assert ran(tmp_path) == ["one", "two", "three"]


def test_an_answer_of_another_process_continues_the_waiting_one(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        answer(tmp_path, {"approved": True})
        told, _ = process.communicate(timeout=LIMIT)

    assert (process.returncode, told) == (0, "pass - release passed\n")
    assert kinds(tmp_path)["callback-submitted"] == 1


def test_a_record_of_one_mode_goes_on_in_the_other(tmp_path: Path) -> None:
    assert script(tmp_path) == 75
    with waiting(tmp_path) as process:
        answer(tmp_path, {"approved": True})
        process.communicate(timeout=LIMIT)

    assert process.returncode == 0
    assert asked(tmp_path) == ["ok"]
    assert ran(tmp_path) == ["one", "two", "three"]


def test_another_session_is_refused_while_one_waits(tmp_path: Path) -> None:
    with waiting(tmp_path) as process:
        second = start(tmp_path)
        _, wrong = second.communicate(timeout=LIMIT)
        process.kill()
        process.wait(LIMIT)

    assert second.returncode == 1
    assert "RunBusy" in wrong
    assert kinds(tmp_path)["run:start"] == 1


@contextmanager
def waiting(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for somebody's answer."""
    process = start(folder, "wait")
    try:
        while "callback-requested" not in _written(folder):
            assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _written(folder: Path) -> str:
    path = folder / "run.jsonl"
    return path.read_text() if path.exists() else ""
