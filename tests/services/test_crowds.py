"""Nobody keeps others waiting: real workers behind a real broker. What is asserted is counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from runs import publishing, registry, services, sweep
from runs.models import Attempt, Run, Step
from tests import flows
from tests.services import crowd_flow
from tests.services.conftest import Worker, kill, lapse
from tests.services.test_celery import until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
HERE = "tests.services.crowd_flow"


@pytest.fixture(autouse=True)
def offered() -> None:
    registry.load()
    for name, (job, limit) in crowd_flow.OFFERS.items():
        publishing.publish(job, title="Of a crowd", concurrency=limit)
        registry.enlist(publishing.offered()[name])


def told(run: Run) -> list[int]:
    """What the steps of the run counted."""
    found = Step.objects.filter(run=run, status="passed").order_by("position")
    return [int(step.summary) for step in found]


def messages(broker: str, prefix: str) -> int:
    import redis

    with redis.Redis.from_url(broker) as client:
        return int(client.llen(f"{prefix}steps"))


def test_a_small_run_ends_while_most_of_a_thousand_steps_still_wait(
    start_worker: Worker, home: Path, broker: str, prefix: str
) -> None:
    wide = services.start_run("wide", {}, actor="user:1")
    assert messages(broker, prefix) <= 128

    with start_worker(OBVERSA_WORKFLOWS=HERE):
        until(lambda: Attempt.objects.filter(run=wide, status="done").count() > 20, home)
        small = services.start_run("small", {}, actor="user:2")
        until(lambda: flows.fresh(small).is_final, home)
        assert messages(broker, prefix) <= 256
        until(lambda: flows.fresh(wide).is_final, home, seconds=120)

    assert flows.fresh(small).status == flows.fresh(wide).status == "passed"
    assert told(small)[0] > 500
    assert not Attempt.objects.exclude(status="done").exists()


def test_somebody_with_hundreds_of_runs_keeps_nobody_waiting(
    start_worker: Worker, home: Path
) -> None:
    many = [services.start_run("small", {}, actor="key:busy") for _ in range(400)]
    one = services.start_run("small", {}, actor="user:2")

    with start_worker(OBVERSA_WORKFLOWS=HERE):
        until(lambda: flows.fresh(one).is_final, home)
        until(lambda: not Run.objects.exclude(status="passed").exists(), home, seconds=120)

    assert told(one)[0] > 100
    assert len(many) == 400


def test_never_more_than_the_limit_go_at_once_though_workers_are_killed(
    start_worker: Worker, home: Path
) -> None:
    runs = [services.start_run("two-at-a-time", {}, actor="user:1") for _ in range(12)]
    seen: list[int] = []

    def done() -> Any:
        seen.append(Run.objects.filter(admission="admitted").count())
        return Run.objects.filter(status="passed").count()

    with start_worker(OBVERSA_WORKFLOWS=HERE) as first:
        until(lambda: done() >= 3, home)
        kill(first)
    lapse()
    with start_worker(OBVERSA_WORKFLOWS=HERE), start_worker(OBVERSA_WORKFLOWS=HERE):
        until(lambda: done() == len(runs), home, seconds=120)

    sweep.sweep()
    assert max(seen) <= 2
    assert {count for run in runs for count in told(run)} <= {1, 2}
    assert os.environ["OBVERSA_HOME"] == str(home)
