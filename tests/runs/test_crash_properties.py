"""Whatever dies at whatever commit: nothing twice, no gaps, rows as the record, the same end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from runs import services, sweep
from runs.archive import rebuild
from runs.archive.verifying import verify_run
from runs.attempts import worker
from runs.drivers.callbacks import create_callback_client, direct_router
from runs.drivers.memory import RunResult
from runs.drivers.memory import run as run_in_memory
from runs.kernel.events import EventKind
from runs.kernel.graph import Shape
from runs.kernel.state import RunState, fold
from runs.models import Attempt, Run
from runs.turns import folding
from tests import flows
from tests.faults.people import RECONCILE, answer_all, is_done
from tests.kernel.shapes import shapes
from tests.runs.drawn import World, in_order
from tests.runs.test_conformance import plain

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(3600)]

MOVES = 300
DEATHS = 12
ONWARD = (0.0, 1e9)
# When a process dies: before or after one of its commits; or its lease lapses under its step.
ends = st.none() | st.tuples(st.sampled_from(["before", "after"]), st.integers(1, 4))
drawn = settings(
    max_examples=max(1, settings().max_examples // 5),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Died(BaseException):
    """The process is gone."""


@contextmanager
def mortal(death: tuple[str, int] | None) -> Iterator[None]:
    """Be a process that dies before or after its nth commit, if it gets there."""
    when, number = death or ("never", 0)
    wrapper: Any = BaseDatabaseWrapper
    commit, count = wrapper._commit, 0

    def counted(self: Any) -> None:
        nonlocal count
        count += 1
        if (when, number) == ("before", count):
            self._rollback()
            raise Died
        commit(self)
        if (when, number) == ("after", count):
            raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wrapper, "_commit", counted)
        try:
            yield
        except Died:
            # What it would have handed out, and all it knew, died with it.
            connection.run_on_commit.clear()
            folding.forget()


class Service:
    """The run of one example, and the processes that live and die around it."""

    def __init__(self, shape: Shape, seed: int, data: st.DataObject) -> None:
        self.world = World(seed)
        self.data = data
        self.deaths = 0
        self.name = flows.offer(self.world.job(shape), name="drawn")
        self.key = f"example {Run.objects.count()}"
        self.act(self.start)
        # Who got no reply asks again, and gets the run that is there.
        self.run = self.start()
        assert Run.objects.filter(idempotency_key=self.key).count() == 1

    def start(self) -> Run:
        return services.start_run(self.name, {}, actor=flows.STARTER, idempotency_key=self.key)

    def act(self, do: Callable[[], Any]) -> None:
        """Let a process do it, which may die of it."""
        death = self.data.draw(ends) if self.deaths < DEATHS else None
        self.deaths += death is not None
        with mortal(death):
            do()

    def to_the_end(self, *, in_order: bool) -> Run:
        """Let one possible thing happen after the other."""
        for _ in range(MOVES):
            if flows.fresh(self.run).is_final:
                return flows.fresh(self.run)
            if flows.sleeps(self.run):
                flows.wake(self.run)
                continue
            moves = self.moves()
            assert moves, f"nothing can happen: {flows.kinds(self.run)[-5:]}"
            move = moves[0] if in_order else self.data.draw(st.sampled_from(moves))
            move()
            if self.data.draw(st.integers(0, 15)) == 0:
                assert rebuild.rebuild(self.run.pk) == 0
        raise AssertionError("The run does not end.")

    def moves(self) -> list[Callable[[], object]]:
        """What can happen: a dead worker is noticed, a question answered, a message delivered."""
        attempts = list(Attempt.objects.filter(run=self.run).order_by("pk"))
        dead = [one.pk for one in attempts if one.status == Attempt.Status.RUNNING]
        asked = [one.request_id for one in flows.pending(self.run)] + self.claimed()
        ready = [one.pk for one in attempts if one.status == Attempt.Status.READY]
        return [
            *(partial(self.act, partial(lose, pk)) for pk in dead),
            *(partial(self.act, partial(self.answer, one)) for one in asked),
            *(partial(self.work, pk) for pk in ready),
        ]

    def claimed(self) -> list[str]:
        """Questions whose answerer died between the claim and the answer."""
        requests = self.state.callbacks.requests.values()
        return [held.request.request_id for held in requests if held.status == "claimed"]

    @property
    def state(self) -> RunState:
        return folding.state_at(self.run.pk, flows.fresh(self.run).last_seq)

    def work(self, pk: int) -> None:
        """A worker gets the message, perhaps once more when all is done, perhaps too slowly."""
        onward = self.data.draw(st.sampled_from(ONWARD))
        if self.data.draw(st.integers(0, 5)) == 0:
            self.world.after_effect = lambda: lose(pk)
        try:
            self.act(lambda: worker.execute(pk, onward=onward))
        finally:
            self.world.after_effect = lambda: None
        effects = list(self.world.effects)
        if Attempt.objects.get(pk=pk).status != Attempt.Status.READY:
            worker.execute(pk)
            assert self.world.effects == effects

    def answer(self, request_id: str) -> None:
        def reply(state: RunState, request: Any) -> dict[str, Any] | None:
            if request.request_id != request_id:
                return None
            if not request.gate_id.startswith(RECONCILE):
                return self.world.answer(request_id)
            effects = [f"{self.run.pk}/{mark}" for mark in self.world.effects]
            done = is_done(self.run.pk, state, request.input, effects)
            return {"action": "finished" if done else "run-again"}

        answer_all(self.run.pk, reply)


def lose(pk: int) -> None:
    """A worker that is alive no more, or seems so."""
    sweep.lose(pk, whatever_the_lease=True)


def in_memory(shape: Shape, seed: int, folder: Path) -> tuple[World, RunResult]:
    """The same work in one process in which nothing happens to anybody."""
    world, client = World(seed), create_callback_client()

    def answer(_: object) -> None:
        for request in client.list_pending():
            direct_router(client, request, "ada", lambda one: world.answer(one.request_id))

    result = run_in_memory(
        world.job(shape), callbacks=client, on_callback="wait", on_event=answer, cwd=folder
    )
    return world, result


def names(world: World) -> list[str]:
    return sorted(world.name_of(mark) for mark in world.effects)


@drawn
@given(shapes(), st.integers(0, 999), st.data())
def test_nothing_is_done_twice_and_rows_are_what_the_record_says(
    shape: Shape, seed: int, data: st.DataObject
) -> None:
    service = Service(shape, seed, data)
    run = service.to_the_end(in_order=False)

    assert {
        mark: count for mark, count in Counter(service.world.effects).items() if count > 1
    } == {}
    events = flows.events(run)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    kinds = Counter(event.kind for event in events)
    assert (kinds[EventKind.RUN_START], kinds[EventKind.RUN_END]) == (1, 1)
    state = fold(events)
    assert state == service.state
    assert rebuild.rebuild(run.pk) == 0
    assert verify_run(run).ok
    for scope in state.scopes.values():
        for node in scope.nodes.values():
            assert node.attempt <= scope.accepted_count + 1
    left = Attempt.objects.filter(run=run, status__in=["ready", "running"])
    assert not left.exists()


@drawn
@given(shapes(), st.integers(0, 999), st.data())
def test_the_end_is_that_of_one_process_to_which_nothing_happens(
    tmp_path_factory: pytest.TempPathFactory, shape: Shape, seed: int, data: st.DataObject
) -> None:
    ordered = in_order(shape)
    world, alone = in_memory(ordered, seed, tmp_path_factory.mktemp("alone"))
    assume(len(alone.events) < 400)

    service = Service(ordered, seed, data)
    run = service.to_the_end(in_order=True)

    assert plain(run.outcome) == plain(alone.outcome.to_json())
    assert names(service.world) == names(world)
