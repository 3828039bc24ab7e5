"""A child of a worker that died gives its steps back at once; nobody else's are touched."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError

from runs import orphans, sweep
from runs.attempts import worker
from runs.models import Attempt, Run
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)
CHILD, OTHER = 4_000_001, 4_000_002


@pytest.fixture(autouse=True)
def main_process() -> Iterator[None]:
    """This process has a pool."""
    worker.speak_for_children()
    yield
    worker._main.clear()


def held_by(name: str) -> Run:
    step = {"name": "a", "job": fn_job("a", lambda ctx: "done", retry_safe=True)}
    run = flows.start(pipeline("one", [step]))
    flows.claimed(run)
    Attempt.objects.filter(run=run).update(worker=name)
    return run


def is_lost(run: Run) -> bool:
    return bool(flows.events(run, "step:lost"))


def test_what_a_child_held_is_given_back_when_it_is_gone() -> None:
    run = held_by(worker.child_name(CHILD))
    alive = [CHILD, OTHER]
    children = orphans.Children(lambda: alive)
    assert children.look() == 0
    assert not is_lost(run)

    alive.remove(CHILD)

    assert children.look() == 1
    assert is_lost(run)
    assert children.look() == 0
    flows.work(run)
    assert flows.fresh(run).status == "passed"


@pytest.mark.parametrize(
    "name",
    [
        # Another child, one whose number begins alike, and one of another start or machine.
        "worker@{host}/{main}/4000002-{start}",
        "worker@{host}/{main}/40000011-{start}",
        "worker@{host}/{main}/4000001-00000000",
        "worker@elsewhere/{main}/4000001-{start}",
    ],
)
def test_what_others_hold_is_theirs(name: str) -> None:
    main, start = worker._main
    run = held_by(name.format(host=socket.gethostname(), main=main, start=start))
    alive = [CHILD, OTHER]
    children = orphans.Children(lambda: alive)
    children.look()
    alive.remove(CHILD)

    assert children.look() == 0

    assert not is_lost(run)


def test_a_number_that_came_again_leaves_it_to_the_lease() -> None:
    run = held_by(worker.child_name(CHILD))
    children = orphans.Children(lambda: [CHILD])

    # It died and the next one has its number: nobody saw it away.
    assert [children.look(), children.look()] == [0, 0]

    assert not is_lost(run)


def test_a_database_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = held_by(worker.child_name(CHILD))
    alive = [CHILD]
    children = orphans.Children(lambda: alive)
    children.look()
    alive.clear()
    lose = sweep.lose_all_of

    def away(name: str) -> int:
        raise OperationalError(name)

    monkeypatch.setattr(sweep, "lose_all_of", away)
    with pytest.raises(OperationalError):
        children.look()
    monkeypatch.setattr(sweep, "lose_all_of", lose)

    assert children.look() == 1
    assert is_lost(run)


def test_the_next_start_of_a_main_process_names_its_children_anew() -> None:
    before = worker.child_name(CHILD)
    worker.speak_for_children()

    assert worker.child_name(CHILD) != before
    # The one that beats has the name by which operators know it.
    assert worker.worker_name().endswith(f"/{os.getpid()}")
    assert before.startswith(f"{worker.worker_name()}/")


def test_a_pool_of_threads_has_no_children() -> None:
    class Threads:
        info: dict[str, Any] = {"threads": 2}  # noqa: RUF012  as Celery's has it

    assert orphans._children_of(Threads()) is None
    assert orphans._children_of(None) is None
