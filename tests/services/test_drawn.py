"""Whatever graph is drawn: real workers behind a real broker come to what one process comes to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from runs import services, sweep
from runs.drivers.memory import RunResult
from runs.kernel.gate import CallbackRequest
from runs.kernel.graph import Shape
from runs.kernel.state import RunState
from runs.models import Run
from tests import flows
from tests.faults.people import answer_all
from tests.kernel.shapes import shapes
from tests.runs.drawn import World, in_order
from tests.runs.test_conformance import plain
from tests.runs.test_crash_properties import in_memory, names
from tests.services import drawn_flow
from tests.services.conftest import Worker
from tests.services.test_celery import until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

RUNS = int(os.environ.get("OBVERSA_TEST_DRAWN_RUNS", "12"))
# Every wait in a run is waited for; a long one tells no more than a short one.
LONGEST = 150
SHORTEST = 12


class Drawn:
    """One drawn job and what it came to in one process."""

    def __init__(self, name: str, shape: Shape, seed: int, world: World, alone: RunResult) -> None:
        self.name, self.shape, self.seed = name, shape, seed
        self.world, self.alone = world, alone

    def __repr__(self) -> str:
        return f"{self.name} seed={self.seed} {self.shape}"


def draw(count: int, folder: Path) -> list[Drawn]:
    """So many jobs that are neither trivial nor long."""
    found: list[Drawn] = []
    kinds: set[tuple[Any, ...]] = set()

    @settings(
        max_examples=count * 12,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(shapes(), st.integers(0, 999))
    def one(shape: Shape, seed: int) -> None:
        if len(found) >= count:
            return
        ordered = in_order(shape)
        world, alone = in_memory(ordered, seed, folder)
        told = tuple(event.kind for event in alone.events)
        if SHORTEST <= len(told) <= LONGEST and told not in kinds:
            kinds.add(told)
            found.append(Drawn(f"drawn-{len(found)}", ordered, seed, world, alone))

    one()
    assert len(found) == count
    return found


def answer(run: Run, world: World) -> None:
    def reply(_state: RunState, request: CallbackRequest) -> dict[str, Any]:
        return world.answer(request.request_id)

    if flows.fresh(run).status == "waiting":
        answer_all(run.pk, reply)


@pytest.mark.parametrize("messages", ["once", "twice"])
def test_real_workers_come_to_the_end_of_one_process(
    start_worker: Worker, home: Path, messages: str
) -> None:
    made = draw(RUNS, home)
    for one in made:
        drawn_flow.write(one.name, one.shape, one.seed)
        flows.offer(drawn_flow.job_of(one.name), name=one.name)

    with start_worker(
        OBVERSA_WORKFLOWS="tests.services.drawn_flow", OBVERSA_TEST_MESSAGES=messages
    ):
        runs = [services.start_run(one.name, {}, actor=flows.STARTER) for one in made]

        def are_over() -> bool:
            left = [
                (run, one)
                for run, one in zip(runs, made, strict=True)
                if not flows.fresh(run).is_final
            ]
            for run, one in left:
                answer(run, one.world)
            return not left

        until(are_over, home, seconds=60 + 5 * RUNS)
        sweep.sweep()

    for run, one in zip(runs, made, strict=True):
        assert plain(flows.fresh(run).outcome) == plain(one.alone.outcome.to_json()), one
        assert names(drawn_flow.world_of(one.name)) == names(one.world), one
        kinds = flows.kinds(run)
        assert (kinds.count("run:start"), kinds.count("run:end")) == (1, 1), one
