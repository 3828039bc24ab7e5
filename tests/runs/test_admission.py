from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs import admission, publishing, registry, services, sweep
from runs.archive.rebuild import rebuild
from runs.attempts import worker
from runs.kernel.errors import DeclarationError
from runs.models import Attempt, Run
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from runs.turns import admission as turns_admission
from runs.turns.admission import TEAM, key_of
from runs.turns.lines import Admission, Limit
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)


def step(name: str = "limited") -> Any:
    return fn_job(name, lambda ctx: "done")


def asks(name: str = "limited") -> Any:
    return pipeline(
        name,
        [
            {"name": "ok", "job": approval("ok", "Ship it?")},
            {"name": "ship", "job": fn_job("ship", lambda ctx: "shipped")},
        ],
    )


def offer(job: Any, concurrency: Any = 2, **options: Any) -> str:
    """Publish the job with a limit; returns its name."""
    registry.load()
    name = job.shape.label if hasattr(job.shape, "label") else job.shape.name
    publishing.publish(job, title="Limited", concurrency=concurrency, **options)
    registry.enlist(publishing.offered()[name])
    return str(name)


def start(name: str, count: int = 1, **options: Any) -> list[Run]:
    options.setdefault("actor", "user:1")
    return [services.start_run(name, {}, **options) for _ in range(count)]


def admissions(runs: list[Run]) -> list[str]:
    return [flows.fresh(run).admission for run in runs]


def positions(runs: list[Run]) -> list[int]:
    found = admission.places_of(flows.fresh(run) for run in runs)
    return [found[run.pk][0].position if run.pk in found else 0 for run in runs]


# --- the limit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [step, asks])
def test_a_run_over_the_limit_is_recorded_and_waits_its_turn(job: Callable[[], Any]) -> None:
    name = offer(job())

    runs = start(name, 4)

    assert admissions(runs) == ["admitted", "admitted", "queued", "queued"]
    assert positions(runs) == [0, 0, 1, 2]
    for run in runs[2:]:
        assert flows.fresh(run).status == "queued"
        assert flows.kinds(run) == ["run:start", "run:queued"]
        assert not Attempt.objects.filter(run=run).exists()
        assert not flows.pending(run)


def test_the_next_is_let_in_when_a_run_ends() -> None:
    runs = start(offer(step()), 4)

    worker.execute(flows.ready(runs[0])[0], onward=0)

    assert flows.fresh(runs[0]).status == "passed"
    assert admissions(runs) == ["outside", "admitted", "admitted", "queued"]
    assert flows.kinds(runs[2])[:3] == ["run:start", "run:queued", "run:admitted"]
    assert len(flows.ready(runs[2])) == 1
    flows.work()
    assert [flows.fresh(run).status for run in runs] == ["passed"] * 4
    assert not Admission.objects.exists()


def test_a_cancelled_run_leaves_the_queue_and_a_cancelled_one_frees_its_place() -> None:
    runs = start(offer(asks(), concurrency=1), 4)

    services.cancel_run(runs[1].pk, actor="user:1")
    assert flows.fresh(runs[1]).status == "cancelled"
    assert positions(runs) == [0, 0, 1, 2]
    assert not Attempt.objects.exists()

    services.cancel_run(runs[0].pk, actor="user:1")
    assert admissions(runs) == ["outside", "outside", "admitted", "queued"]
    assert flows.pending(runs[2])


def test_a_run_cancelled_in_the_queue_takes_its_place_anew_when_it_is_resumed() -> None:
    for job in (step("one"), asks("two")):
        runs = start(offer(job, concurrency=1), 2)
        services.cancel_run(runs[1].pk, actor="user:1")

        services.resume_run(runs[1].pk, actor="user:1")

        assert admissions(runs) == ["admitted", "queued"]
        services.cancel_run(runs[0].pk, actor="user:1")
        assert admissions(runs) == ["outside", "admitted"]
        flows.work()
        if flows.pending(runs[1]):
            flows.answer(runs[1], {"approved": True})
            flows.work()
        assert flows.fresh(runs[1]).status == "passed"


def test_a_run_that_waits_for_a_person_keeps_its_place() -> None:
    runs = start(offer(asks(), concurrency=1), 2)

    assert flows.fresh(runs[0]).status == "waiting"
    assert admissions(runs) == ["admitted", "queued"]


def test_a_run_gives_its_place_back_while_it_waits_when_its_workflow_says_so() -> None:
    told = {"limit": 1, "while_waiting": "give_back"}
    runs = start(offer(asks(), concurrency=told), 3)
    assert admissions(runs) == ["outside"] * 3
    assert [flows.fresh(run).status for run in runs] == ["waiting"] * 3

    for run in runs:
        flows.answer(run, {"approved": True})

    assert admissions(runs) == ["admitted", "queued", "queued"]
    assert [len(flows.ready(run)) for run in runs] == [1, 0, 0]
    flows.work()
    assert [flows.fresh(run).status for run in runs] == ["passed"] * 3
    assert flows.kinds(runs[1]).count("run:admitted") == 2


def test_a_run_that_is_held_frees_its_place_and_stands_in_line_when_it_is_resumed() -> None:
    runs = start(offer(step(), concurrency=1), 2)
    changed = pipeline("limited", [{"name": "a", "job": step("a")}])
    kept = publishing.offered()["limited"]
    publishing.publish(changed, title="Limited", concurrency=1)
    worker.execute(flows.ready(runs[0])[0])
    assert flows.fresh(runs[0]).status == "paused"
    assert admissions(runs) == ["outside", "admitted"]
    publishing._offered["limited"] = kept

    services.resume_run(runs[0].pk, actor="user:1")

    assert admissions(runs) == ["queued", "admitted"]
    flows.work()
    assert [flows.fresh(run).status for run in runs] == ["passed"] * 2
    # The start that was there before it stood in line is the one that was made.
    assert Attempt.objects.filter(run=runs[0]).count() == 1


def test_a_workflow_without_a_limit_has_no_line_and_costs_no_statement_more() -> None:
    free = flows.offer(step("free"))
    start(free)
    with counted() as before:
        start(free)
    offer(step("limited"))
    with counted() as after:
        (run,) = start(free)

    assert len(after) == len(before)
    assert not [sql for sql in after if "runs_admission" in sql]
    assert run.admission == ""
    with counted() as worked:
        flows.work(run)
    assert not [sql for sql in worked if "runs_admission" in sql or "runs_limit" in sql]


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that are made meanwhile."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as context:
        yield found
    found += [query["sql"] for query in context.captured_queries]


# --- changing it ---------------------------------------------------------------------------------


def test_a_higher_limit_takes_effect_with_the_next_sweep_and_a_lower_one_at_once() -> None:
    runs = start(offer(step(), concurrency=1), 5)

    offer(step(), concurrency=3)
    sweep.sweep()
    assert admissions(runs) == ["admitted"] * 3 + ["queued"] * 2

    offer(step(), concurrency=1)
    worker.execute(flows.ready(runs[0])[0], onward=0)
    assert admissions(runs)[1:] == ["admitted"] * 2 + ["queued"] * 2


def test_without_its_limit_everybody_goes_on() -> None:
    runs = start(offer(step(), concurrency=1), 3)

    offer(step(), concurrency=None)
    sweep.sweep()

    assert "queued" not in admissions(runs)
    flows.work()
    assert [flows.fresh(run).status for run in runs] == ["passed"] * 3


@pytest.mark.parametrize(
    "given", [0, -1, True, "2", 1.5, {"limit": 0}, {"limit": 1, "while_waiting": "x"}, {"of": 1}]
)
def test_a_limit_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(DeclarationError, match="concurrency"):
        publishing.publish(step("odd"), title="Odd", concurrency=given)


# --- teams ---------------------------------------------------------------------------------------


def test_the_runs_of_all_workflows_that_a_team_may_start_share_its_places() -> None:
    Limit.objects.create(key=key_of(TEAM, "Platform"), most=2)
    first = offer(step("first"), None, audience={"groups": ["Platform", "Ops"]})
    second = offer(step("second"), None, starters={"groups": ["Platform"]})
    other = offer(step("other"), None, audience={"groups": ["Ops"]})

    runs = [*start(first), *start(second), *start(first), *start(other)]

    assert admissions(runs) == ["admitted", "admitted", "queued", ""]
    (place,) = admission.places_of([flows.fresh(runs[2])])[runs[2].pk]
    assert admission.in_words([place]) == "1st in the queue of the team Platform: 2 at a time"


def test_a_limit_with_room_is_not_said_where_another_one_keeps_the_run_waiting() -> None:
    Limit.objects.create(key=key_of(TEAM, "Platform"), most=5)
    runs = start(offer(step(), 1, audience={"groups": ["Platform"]}), 2)

    places = admission.places_of([flows.fresh(runs[1])])[runs[1].pk]

    assert admission.in_words(places) == "1st in the queue of limited: 1 at a time"


def test_whom_another_limit_keeps_out_keeps_nobody_behind_it_waiting() -> None:
    Limit.objects.create(key=key_of(TEAM, "Platform"), most=1)
    shared = offer(step("shared"), 1)
    mine = offer(step("mine"), 5, audience={"groups": ["Platform"]})
    both = offer(step("both"), 1, audience={"groups": ["Platform"]})
    holds = start(mine)
    blocked = start(both)
    waits = start(shared, 2)
    assert admissions([*holds, *blocked, *waits]) == ["admitted", "queued", "admitted", "queued"]

    worker.execute(flows.ready(waits[0])[0], onward=0)

    assert admissions(waits) == ["outside", "admitted"]
    assert admissions(blocked) == ["queued"]
    worker.execute(flows.ready(holds[0])[0], onward=0)
    assert admissions(blocked) == ["admitted"]


# --- priorities ----------------------------------------------------------------------------------


def test_who_has_priority_goes_first_and_the_others_in_the_order_they_came() -> None:
    name = offer(step(), concurrency=1)
    runs = start(name, 3)
    (urgent,) = start(name, priority=5)
    (idle,) = start(name, priority=-5)

    assert positions([*runs, urgent, idle]) == [0, 2, 3, 1, 4]


def test_nobody_waits_for_ever_behind_those_with_priority() -> None:
    name = offer(step(), concurrency=1)
    start(name)
    (low,) = start(name, priority=-10)
    Admission.objects.filter(run=low).update(rank=timezone.now() - timedelta(minutes=1))

    (high,) = start(name, priority=0)

    assert positions([low, high]) == [1, 2]


# --- races ---------------------------------------------------------------------------------------


def under_way() -> int:
    return Run.objects.filter(admission="admitted").count()


def together(*acts: Callable[[], None]) -> None:
    """Do them at once, each on its own connection."""
    barrier = threading.Barrier(len(acts))
    failed: list[Exception] = []

    def go(act: Callable[[], None]) -> None:
        try:
            barrier.wait(30)
            act()
        except Exception as error:  # noqa: BLE001  told by the test
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed, failed


def test_never_more_than_the_limit_are_let_in_by_many_starts_at_once() -> None:
    name = offer(asks(), concurrency=3)
    runs: list[Run] = []

    together(*[lambda: runs.extend(start(name, 4)) for _ in range(8)])

    assert len(runs) == 32
    assert under_way() == 3
    assert Run.objects.filter(admission="queued").count() == 29
    assert Admission.objects.filter(admitted=True).count() == 3


def test_every_place_that_many_ends_free_at_once_is_taken_once() -> None:
    name = offer(asks(), concurrency=4)
    runs = start(name, 12)
    seen: list[int] = []

    def cancel(run: Run) -> None:
        services.cancel_run(run.pk, actor="user:1")
        seen.append(under_way())

    together(*[partial(cancel, run) for run in runs[:4]])

    assert max(seen) <= 4
    sweep.sweep()
    assert under_way() == 4
    assert admissions(runs) == ["outside"] * 4 + ["admitted"] * 4 + ["queued"] * 4


def test_the_sweep_lets_in_whom_a_killed_process_forgot(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = start(offer(step(), concurrency=1), 3)
    monkeypatch.setattr("runs.turns.admission._heard", [])
    worker.execute(flows.ready(runs[0])[0], onward=0)
    assert admissions(runs) == ["outside", "queued", "queued"]

    sweep.sweep()

    assert admissions(runs) == ["outside", "admitted", "queued"]


def test_one_that_cannot_be_let_in_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = start(offer(step(), concurrency=1), 3)
    let_in = turns_admission.let_in

    def fails(turn: Any) -> bool:
        if turn.run.pk == runs[1].pk:
            raise ValueError("its definition was edited")
        return let_in(turn)

    monkeypatch.setattr(turns_admission, "let_in", fails)
    worker.execute(flows.ready(runs[0])[0], onward=0)

    assert admissions(runs) == ["outside", "queued", "admitted"]


def test_rows_made_anew_are_the_same() -> None:
    runs = start(offer(asks(), concurrency=1), 2)

    assert [rebuild(run.pk) for run in runs] == [0, 0]
    assert positions(runs) == [0, 1]


@pytest.mark.parametrize(
    ("number", "told"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (121, "121st")],
)
def test_a_place_is_said_in_words(number: int, told: str) -> None:
    assert admission.ordinal(number) == told
