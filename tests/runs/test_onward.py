"""A worker that ends a step begins one that follows in the same turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from runs import dispatch, parallel, record, registry, services, sweep
from runs.attempts import worker
from runs.drivers.context import Context
from runs.models import Attempt, Run
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The attempts that are handed to the broker."""
    found: list[int] = []
    monkeypatch.setattr(dispatch, "send", lambda attempts, *_: found.extend(attempts))
    return found


def chain(*bodies: Callable[[Context], Any]) -> Any:
    names = "abcdefgh"[: len(bodies)]
    steps = zip(names, bodies, strict=True)
    return pipeline("chain", [{"name": n, "job": fn_job(n, body)} for n, body in steps])


def done(ctx: Context) -> str:
    return "done"


def die() -> None:
    running = Attempt.objects.filter(status=Attempt.Status.RUNNING)
    running.update(lease_until=Now() - timedelta(seconds=1))


def test_one_message_is_enough_for_a_chain(sent: list[int]) -> None:
    run = flows.start(chain(done, done, done))
    (first,) = sent

    worker.execute(first)

    assert flows.fresh(run).status == "passed"
    assert sent == [first]
    found = list(Attempt.objects.filter(run=run).order_by("pk"))
    assert [attempt.status for attempt in found] == ["done"] * 3
    assert len({attempt.fence for attempt in found}) == 3


def test_every_start_is_in_the_record_before_its_job_begins(sent: list[int]) -> None:
    seen: list[tuple[list[str], str]] = []

    def body(ctx: Context) -> None:
        held = Attempt.objects.get(run_id=ctx.run_id, status="running")
        assert held.lease_until is not None
        assert held.claimed_at is not None
        assert held.lease_until > held.claimed_at
        run = Run.objects.get(pk=ctx.run_id)
        starts = [event.path[-1] for event in flows.events(run, "job:start") if event.path]
        seen.append((starts, "/".join(held.path)))

    flows.start(chain(body, body))
    worker.execute(sent[0])

    assert seen == [(["a"], "chain/a"), (["a", "b"], "chain/b")]


def test_the_record_is_the_one_of_a_worker_that_does_one_step_at_a_time() -> None:
    def record_of(name: str, onward: float) -> list[tuple[Any, ...]]:
        run = flows.start(chain(done, done, done), name=name)
        while found := flows.ready(run):
            worker.execute(found[0], onward=onward)
        return [(event.kind, event.path, event.actor, event.key) for event in flows.events(run)]

    assert record_of("onward", 60) == record_of("alone", 0)


def test_the_other_steps_that_follow_are_handed_out(sent: list[int]) -> None:
    begun = threading.Barrier(3, timeout=30)

    def body(ctx: Context) -> None:
        begun.wait()

    wide = parallel("wide", [fn_job(f"w{index}", body) for index in range(3)])
    run = flows.start(pipeline("p", [{"name": "a", "job": fn_job("a", done)}, wide_node(wide)]))

    with flows.in_background(lambda: worker.execute(sent[0])):
        wait_for(lambda: len(sent) == 3)
        flows.at_once(2, lambda index: worker.execute(sent[1 + index]))

    assert flows.fresh(run).status == "passed"
    assert Attempt.objects.filter(run=run).count() == 4


def wide_node(wide: Any) -> dict[str, Any]:
    return {"name": "wide", "job": wide}


def wait_for(what: Callable[[], bool]) -> None:
    ticks = threading.Event()
    for _ in range(3000):
        if what():
            return
        ticks.wait(0.01)
    raise AssertionError("it did not come")


def test_with_its_time_over_a_worker_lets_others_have_the_next_step(sent: list[int]) -> None:
    run = flows.start(chain(done, done))

    worker.execute(sent[0], onward=0)

    assert flows.statuses(run) == {"a": "passed", "b": "queued"}
    assert len(sent) == 2
    assert flows.ready(run) == [sent[1]]


def test_a_worker_that_is_to_end_begins_nothing(sent: list[int]) -> None:
    run = flows.start(chain(done, done))
    worker.leave()
    try:
        worker.execute(sent[0])
    finally:
        worker.stay()

    assert flows.statuses(run) == {"a": "passed", "b": "queued"}
    assert flows.ready(run) == [sent[1]]


def test_a_worker_that_dies_in_a_following_step_interrupts_that_step_alone(sent: list[int]) -> None:
    def dies(ctx: Context) -> None:
        raise KeyboardInterrupt

    calls: list[str] = []
    run = flows.start(chain(lambda ctx: calls.append("a"), dies, done))
    with pytest.raises(KeyboardInterrupt):
        worker.execute(sent[0])
    assert flows.statuses(run) == {"a": "passed", "b": "running", "c": "idle"}

    die()
    assert sweep.sweep().lost == 1

    (question,) = flows.pending(run)
    assert question.gate_id.startswith("reconcile:")
    assert "b" in question.decision_text
    assert calls == ["a"]


def test_after_a_cancel_nothing_follows(sent: list[int]) -> None:
    calls: list[str] = []

    def cancels(ctx: Context) -> None:
        services.cancel_run(run.pk, actor="user:1")

    run = flows.start(chain(cancels, lambda ctx: calls.append("b")))
    worker.execute(sent[0])

    assert flows.fresh(run).status == "cancelled"
    assert not calls
    assert len(sent) == 1


def test_changed_code_is_not_gone_on_with(sent: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def changes(ctx: Context) -> None:
        monkeypatch.setattr(registry, "published", lambda name: None)

    run = flows.start(chain(changes, done))
    worker.execute(sent[0])

    assert flows.statuses(run) == {"a": "passed", "b": "queued"}
    assert flows.ready(run) == [sent[1]]


def test_a_question_or_an_end_is_followed_by_nothing(sent: list[int]) -> None:
    job = dag(
        "asks",
        {
            "a": fn_job("a", done),
            "ask": {"job": approval("ask", "Go on?"), "needs": ["a"]},
            "b": {"job": fn_job("b", done), "needs": ["ask"]},
        },
    )
    run = flows.start(job)
    worker.execute(sent[0])

    assert flows.fresh(run).status == "waiting"
    assert len(sent) == 1


@pytest.mark.parametrize("after_commit", [False, True])
def test_a_commit_whose_answer_is_lost_strands_no_step_it_began(
    sent: list[int], monkeypatch: pytest.MonkeyPatch, *, after_commit: bool
) -> None:
    calls: list[str] = []
    run = flows.start(chain(*(lambda ctx, n=n: calls.append(n) for n in "abc")))
    turn, turns = record.turn, iter(range(1, 100))

    @contextmanager
    def breaking(*args: Any, **options: Any) -> Iterator[Any]:
        breaks = next(turns) == 2  # the turn that ends `a` and begins `b`
        with turn(*args, **options) as opened:
            yield opened
            if breaks and not after_commit:
                raise OperationalError("the connection broke")
        if breaks:
            raise OperationalError("the connection broke, but the commit was made")

    monkeypatch.setattr(record, "turn", breaking)
    worker.execute(sent[0])
    monkeypatch.setattr(record, "turn", turn)

    assert calls == ["a", "b", "c"]
    assert flows.fresh(run).status == "passed"
    assert "step:refused" not in flows.kinds(run)
    assert not Attempt.objects.filter(run=run).exclude(status="done").exists()


@pytest.mark.postgres
def test_a_step_that_follows_costs_one_statement(sent: list[int]) -> None:
    counts = []
    for length in (2, 5):
        flows.start(chain(*[done] * length), name=f"chain-{length}")
        with CaptureQueriesContext(connection) as queries:
            worker.execute(sent[-1])
        found = [query["sql"] for query in queries.captured_queries]
        counts.append(sum(sql.lstrip().startswith(("SELECT", "WITH")) for sql in found))

    assert counts[1] - counts[0] == 3
