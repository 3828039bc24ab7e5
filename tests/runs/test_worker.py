from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError
from django.db.models.functions import Now

from runs import record, registry, services, sweep
from runs.attempts import leases, worker
from runs.drivers.context import Context
from runs.kernel.gate import create_callback_gate
from runs.models import Artifact, Attempt, Event, Run
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from tests import flows

pytestmark = pytest.mark.django_db
QUESTION = create_callback_gate(
    gate_id="odd",
    gate_version=1,
    decision_text="Well?",
    response_schema={"type": "object"},
    input=None,
)


def one(fn: Any, **options: Any) -> Any:
    """A workflow of the one step `fn`."""
    return pipeline("one", [{"name": "a", "job": fn_job("a", fn, **options)}])


def after(fn: Any) -> Any:
    """A workflow whose step `fn` comes after another one."""
    before = {"name": "before", "job": fn_job("before", lambda ctx: "before")}
    return pipeline("after", [before, {"name": "a", "job": fn_job("a", fn)}])


def the_step(run: Run) -> Any:
    return flows.steps(run)["a"]


def test_the_start_is_recorded_before_the_job_begins() -> None:
    seen: list[list[str]] = []

    def body(ctx: Context) -> None:
        seen.append(list(Event.objects.values_list("kind", flat=True)))

    run = flows.ran(one(body))

    assert seen[0][-1] == "job:start"
    assert Attempt.objects.get(run=run).status == "done"


@pytest.mark.django_db(transaction=True)
def test_a_message_delivered_five_times_at_once_runs_the_job_once() -> None:
    calls: list[str] = []
    run = flows.start(one(lambda ctx: calls.append(ctx.run_id)))
    attempt = flows.ready(run)[0]

    assert flows.at_once(5, lambda _: worker.execute(attempt)) == [None] * 5

    assert calls == [str(run.pk)]
    assert flows.kinds(run).count("job:start") == flows.kinds(run).count("job:end") == 1
    assert "step:refused" not in flows.kinds(run)


def test_a_message_for_a_start_that_is_over_does_nothing() -> None:
    calls: list[int] = []
    run = flows.ran(one(lambda ctx: calls.append(1)))
    before = flows.kinds(run)

    for attempt in Attempt.objects.values_list("pk", flat=True):
        worker.execute(attempt)
    worker.execute(10**9)

    assert calls == [1]
    assert flows.kinds(run) == before


@pytest.mark.django_db(transaction=True)
def test_a_result_that_comes_after_its_lease_is_refused_and_noted() -> None:
    begun, go_on = threading.Event(), threading.Event()
    answers = iter(["late", "in time"])

    def body(ctx: Context) -> str:
        result = next(answers)
        if result == "late":
            begun.set()
            go_on.wait(20)
            ctx.log("from beyond")
        return result

    run = flows.start(one(body, retry_safe=True))
    stalled = flows.ready(run)[0]
    with flows.in_background(lambda: worker.execute(stalled)):
        assert begun.wait(20)
        assert sweep.lose(stalled, whatever_the_lease=True)
        flows.work(run)
        assert flows.fresh(run).status == "passed"
        go_on.set()

    assert the_step(run).summary == "in time"
    assert flows.kinds(run).count("job:end") == 1
    assert [event.fields["number"] for event in flows.events(run, "step:refused")] == [1]
    assert not flows.events(run, "log")
    assert flows.fresh(run).outcome == flows.events(run, "run:end")[0].fields["outcome"]


@pytest.mark.django_db(transaction=True)
def test_a_step_without_its_lease_can_ask_nothing() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def body(ctx: Context) -> str:
        if not begun.is_set():
            begun.set()
            go_on.wait(20)
            ctx.callbacks.post(QUESTION)
        return "done"

    run = flows.start(one(body, retry_safe=True))
    stalled = flows.ready(run)[0]
    with flows.in_background(lambda: worker.execute(stalled)):
        assert begun.wait(20)
        sweep.lose(stalled, whatever_the_lease=True)
        flows.work(run)
        go_on.set()

    assert not flows.events(run, "callback-requested")
    assert flows.fresh(run).status == "passed"


@pytest.mark.django_db(transaction=True)
def test_a_step_that_works_longer_than_a_lease_keeps_it(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not so short that a busy machine loses the step between two beats.
    settings.OBVERSA_LEASE_SECONDS = 30.0
    monkeypatch.setattr(leases, "BEATS_PER_LEASE", 300)
    monkeypatch.setattr(worker, "leases", leases.Leases())
    begun, go_on = threading.Event(), threading.Event()

    def body(ctx: Context) -> str:
        begun.set()
        go_on.wait(60)
        return "done"

    run = flows.start(one(body))
    attempt = flows.ready(run)[0]
    with flows.in_background(lambda: worker.execute(attempt)):
        assert begun.wait(20)
        running = Attempt.objects.filter(pk=attempt, status="running")
        # What the first lease would have come to by now.
        running.update(lease_until=record.database_now())
        pause = threading.Event()
        for _ in range(1000):
            if running.filter(lease_until__gt=Now() + timedelta(seconds=20)).exists():
                break
            pause.wait(0.02)
        assert sweep.sweep().lost == 0
        go_on.set()

    assert flows.fresh(run).status == "passed"
    assert "step:lost" not in flows.kinds(run)


def test_a_cancelled_start_is_withdrawn_by_the_worker_that_finds_it() -> None:
    calls: list[int] = []
    run = flows.start(one(lambda ctx: calls.append(1)))
    attempt = flows.ready(run)[0]
    services.cancel_run(run.pk, actor="user:1")
    assert Attempt.objects.get(pk=attempt).status == "withdrawn"

    worker.execute(attempt)

    assert calls == []
    assert "job:start" not in flows.kinds(run)


def test_what_a_step_changes_in_the_state_reaches_the_next_one() -> None:
    def first(ctx: Context) -> None:
        ctx.state.update(kept=1, gone=2, list=[1])

    def second(ctx: Context) -> None:
        ctx.state["list"].append(2)
        del ctx.state["gone"]

    def third(ctx: Context) -> str:
        return repr(sorted(ctx.state.items()))

    job = pipeline(
        "stateful",
        [{"name": fn.__name__, "job": fn_job(fn.__name__, fn)} for fn in (first, second, third)],
    )
    run = flows.ran(job)

    assert flows.steps(run)["third"].summary == "[('kept', 1), ('list', [1, 2])]"
    assert [event.fields.get("state") for event in flows.events(run, "job:end")] == [
        {"set": {"kept": 1, "gone": 2, "list": [1]}, "removed": []},
        {"set": {"list": [1, 2]}, "removed": ["gone"]},
        None,
    ]


def test_two_steps_at_once_keep_each_others_changes() -> None:
    def mark(name: str) -> Any:
        def body(ctx: Context) -> None:
            ctx.state[name] = True

        return fn_job(name, body)

    both = dag("both", {"a": mark("a"), "b": mark("b")})
    run = flows.ran(
        pipeline(
            "outer",
            [
                {"name": "both", "job": both},
                {"name": "look", "job": fn_job("look", lambda ctx: ",".join(sorted(ctx.state)))},
            ],
        )
    )

    assert flows.steps(run)["look"].summary == "a,b"


def test_what_a_step_says_while_it_works_is_in_the_record() -> None:
    def body(ctx: Context) -> None:
        ctx.log("begun", "debug")
        ctx.emit("app:mark", percent=50)
        kept = ctx.attach("notes.txt", "hello", "text/plain")
        assert kept["byteLength"] == 5

    run = flows.ran(one(body))

    kinds = flows.kinds(run)
    begin = kinds.index("job:start")
    assert kinds[begin : begin + 5] == [
        "job:start",
        "log",
        "app:mark",
        "artifact:stored",
        "job:end",
    ]
    mark = flows.events(run, "app:mark")[0]
    assert (mark.path, dict(mark.fields)) == (("one", "a"), {"percent": 50})
    artifact = Artifact.objects.get(run=run)
    assert (artifact.name, artifact.size, artifact.step_path) == ("notes.txt", 5, ["one", "a"])


def test_the_same_logical_attempt_has_the_same_key_at_every_try() -> None:
    keys: list[str] = []

    def body(ctx: Context) -> str:
        keys.append(ctx.idempotency_key)
        return "done"

    run = flows.start(one(body, retry_safe=True))
    sweep.lose(flows.claimed(run), whatever_the_lease=True)
    other = flows.start(one(body, retry_safe=True))
    flows.work()

    assert len(keys) == 2
    assert keys[0] == f"{run.pk}/one/a/1.1"
    assert keys[1] == f"{other.pk}/one/a/1.1"
    assert Attempt.objects.filter(run=run).count() == 2


def test_a_changed_shape_holds_the_run_until_the_code_fits_again() -> None:
    job = after(lambda ctx: "done")
    run = flows.start(job)
    other = pipeline("after", [{"name": "before", "job": fn_job("before", str)}])
    flows.offer(other)

    worker.execute(flows.ready(run)[0])

    held = flows.fresh(run)
    assert (held.status, held.display_status) == ("paused", "paused")
    assert "changed since this run started" in held.held_reason
    assert "job:start" not in flows.kinds(run)

    services.resume_run(run.pk, actor="user:1")
    flows.work(run)
    assert flows.fresh(run).status == "paused"
    assert flows.kinds(run).count("run:held") == 2

    flows.offer(job)
    services.resume_run(run.pk, actor="user:1")
    flows.work(run)
    assert flows.fresh(run).status == "passed"
    assert flows.kinds(run).count("run:start") == 1


def test_a_workflow_taken_away_while_its_run_waits_holds_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = flows.start(after(lambda ctx: "done"))
    with monkeypatch.context() as patch:
        patch.setattr(registry, "published", lambda name: None)
        worker.execute(flows.ready(run)[0])

    assert "after is not on this worker" in flows.fresh(run).held_reason
    services.resume_run(run.pk, actor="user:1")
    flows.work(run)
    assert flows.fresh(run).status == "passed"


def test_changed_bodies_go_on_and_are_noted_once() -> None:
    run = flows.start(after(lambda ctx: "one"))
    flows.offer(after(lambda ctx: "two, quite another"))

    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert the_step(run).summary == "two, quite another"
    notes = [event.fields["message"] for event in flows.events(run, "log")]
    assert len(notes) == 1
    assert "code of this workflow changed" in notes[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("after_commit", [False, True])
@pytest.mark.parametrize("which", [1, 2, 3])
def test_a_connection_that_breaks_around_a_commit_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, which: int, *, after_commit: bool
) -> None:
    calls: list[int] = []

    def body(ctx: Context) -> None:
        ctx.log("here")
        calls.append(1)

    run = flows.start(one(body))
    attempt = flows.ready(run)[0]
    turn, turns = record.turn, iter(range(1, 100))

    @contextmanager
    def breaking(*args: Any, **options: Any) -> Any:
        breaks = next(turns) == which
        with turn(*args, **options) as opened:
            yield opened
            if breaks and not after_commit:
                raise OperationalError("the connection broke")
        if breaks:
            raise OperationalError("the connection broke, but the commit was made")

    monkeypatch.setattr(record, "turn", breaking)
    worker.execute(attempt)
    monkeypatch.setattr(record, "turn", turn)

    assert calls == [1]
    assert flows.fresh(run).status == "passed"
    kinds = flows.kinds(run)
    assert [kinds.count(kind) for kind in ("job:start", "log", "job:end")] == [1, 1, 1]
    assert "step:refused" not in kinds


def test_a_long_path_has_keys_of_its_own() -> None:
    names = ["n" * 290 + "1", "n" * 290 + "2"]
    job = dag("g" * 290, {name: fn_job("x", lambda ctx: "ok") for name in names})

    run = flows.ran(job, name="long")

    assert run.status == "passed"
    assert flows.kinds(run).count("job:end") == 2
