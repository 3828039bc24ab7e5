"""Real workers behind a real broker, on the database of the test."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs import dispatch, services, sweep
from runs.models import Attempt, Heartbeat, Run
from tests import flows
from tests.services import flow
from tests.services.conftest import Worker, kill, lapse

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]


def until(is_so: Callable[[], Any], home: Path, *, seconds: float = 120) -> None:
    """Sweep until it is so."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError((home / "worker.log").read_text()[-4000:])
        sweep.sweep()
        time.sleep(0.05)


def status(run: Run) -> str:
    return flows.fresh(run).status


def start(workflow: str) -> Run:
    effect, retry_safe = flow.EFFECTS[workflow]
    flows.offer(flow.main_job(workflow, effect, retry_safe=retry_safe))
    return services.start_run(workflow, {}, actor="user:1")


def to_its_end(run: Run, home: Path) -> None:
    until(lambda: status(run) == "waiting", home)
    flows.answer(run, {"approved": True})
    until(lambda: flows.fresh(run).is_final, home)


@pytest.mark.parametrize("messages", ["once", "twice", "lost"])
def test_a_run_ends_whatever_the_broker_does_to_its_messages(
    start_worker: Worker, home: Path, monkeypatch: pytest.MonkeyPatch, messages: str
) -> None:
    send = dispatch.send
    if messages == "lost":
        monkeypatch.setattr(dispatch, "send", lambda *_: None)
    run = start("asks")
    monkeypatch.setattr(dispatch, "send", send)

    with start_worker(OBVERSA_TEST_MESSAGES=messages):
        to_its_end(run, home)
        # It shows that it lives from a thread of its own, which may come after a short run.
        until(Heartbeat.objects.filter(role="worker").exists, home)

    assert status(run) == "passed"
    assert sorted(flow.effects()) == flow.expected("asks")
    kinds = flows.kinds(run)
    assert kinds.count("run:end") == 1
    assert kinds.count("step:lost") == kinds.count("step:refused") == 0
    assert set(Attempt.objects.values_list("status", flat=True)) == {"done"}


def test_a_worker_killed_in_the_middle_of_a_step_is_followed_by_another(
    start_worker: Worker, home: Path
) -> None:
    run = start("slow")
    with start_worker() as first:
        until((home / "begun").exists, home)
        kill(first)
    lapse()
    (home / "go-on").touch()

    with start_worker():
        to_its_end(run, home)

    assert status(run) == "passed"
    assert flows.kinds(run).count("step:lost") == 1
    assert sorted(flow.effects()) == flow.expected("slow")
    assert "callback-requested" in flows.kinds(run)


def test_a_worker_killed_in_a_step_that_may_not_repeat_leaves_one_question(
    start_worker: Worker, home: Path
) -> None:
    run = start("slow-once")
    with start_worker() as first:
        until((home / "begun").exists, home)
        kill(first)
    lapse()
    (home / "go-on").touch()

    with start_worker():
        until(lambda: status(run) == "waiting", home)
        assert flows.fresh(run).waiting_on == ["question"]
        assert flow.effects() == []
        flows.answer(run, {"action": "run-again"})
        to_its_end(run, home)

    assert status(run) == "passed"
    assert sorted(flow.effects()) == flow.expected("slow-once")


def test_a_child_killed_in_the_middle_of_a_step_gives_it_back_long_before_its_lease_is_over(
    start_worker: Worker, home: Path
) -> None:
    run = start("slow")
    with start_worker(OBVERSA_LEASE_SECONDS="3600"):
        until((home / "begun").exists, home)
        holder = Attempt.objects.get(run=run, status="running").worker
        os.kill(int(holder.rpartition("/")[2].partition("-")[0]), signal.SIGKILL)
        until(lambda: "step:lost" in flows.kinds(run), home)
        (home / "go-on").touch()
        to_its_end(run, home)

    assert status(run) == "passed"
    assert flows.kinds(run).count("step:lost") == 1
    assert sorted(flow.effects()) == flow.expected("slow")


def test_a_worker_told_to_stop_finishes_its_step_first(start_worker: Worker, home: Path) -> None:
    run = start("slow")
    with start_worker() as worker:
        until((home / "begun").exists, home)
        os.kill(worker.pid, signal.SIGTERM)
        time.sleep(0.5)
        assert worker.poll() is None
        (home / "go-on").touch()
        assert worker.wait(30) == 0

    assert flows.statuses(run)["build"] == "passed"
    assert "step:lost" not in flows.kinds(run)


def test_a_worker_for_decisions_alone_leaves_the_steps_to_others(
    start_worker: Worker, home: Path
) -> None:
    run = start("asks")
    with start_worker("-Q", "control,notify"):
        until(Heartbeat.objects.filter(role="worker").exists, home)
        time.sleep(1)
        assert set(Attempt.objects.values_list("status", flat=True)) == {"ready"}
        assert flow.effects() == []

        with start_worker("-Q", "steps"):
            to_its_end(run, home)

    assert status(run) == "passed"
    assert sorted(flow.effects()) == flow.expected("asks")
