from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.fixups import django as django_fixup
from django.conf import LazySettings
from django.db import connection

from runs import dispatch, registry, services, tasks
from runs.attempts import worker
from runs.drivers.context import Context
from runs.embedded import EmbeddedWorker
from runs.kernel.jsonable import canonical_json
from runs.kernel.outcomes import kickback
from runs.models import Attempt, Heartbeat, Run
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from tests import brokers, flows

pytestmark = pytest.mark.django_db(transaction=True)

VOLATILE = {"durationMs", "recordId", "runId"}


def main_job() -> Any:
    """Work side by side, a send-back, a question and work after it."""

    def build(ctx: Context) -> str:
        ctx.log("building")
        ctx.state["built"] = ctx.state.get("built", 0) + 1
        return f"build {ctx.state['built']}"

    def review(ctx: Context) -> Any:
        return "good" if ctx.state["built"] > 1 else kickback(to="build", reason="once more")

    sides = dag("sides", {name: fn_job(name, lambda ctx: "ok") for name in ("a", "b", "c")})
    return pipeline(
        "main-job",
        [
            {"name": "build", "job": fn_job("build", build)},
            {
                "name": "review",
                "job": fn_job("review", review),
                "accepts_kickback_to": ["build"],
            },
            {"name": "sides", "job": sides},
            {"name": "ok", "job": approval("ok", "Ship it?")},
            {"name": "ship", "job": fn_job("ship", lambda ctx: "shipped")},
        ],
        max_kickbacks=1,
    )


@pytest.fixture
def embedded_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedWorker]:
    monkeypatch.setattr(registry, "refresh", lambda: None)
    monkeypatch.setattr(worker, "_names", {"role": "worker"})
    made = EmbeddedWorker(threads=2)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def celery_worker(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Celery worker in a thread, on a broker in memory, with the product's own tasks."""
    app: Celery = tasks.execute.app
    monkeypatch.setattr(tasks, "_live", lambda: None)
    before = {name: app.conf[name] for name in ("broker_url", "broker_transport_options")}
    settings.CELERY_BROKER_URL = "memory://"
    app.conf.update(broker_url="memory://", broker_transport_options={"polling_interval": 0.01})
    brokers.forget()
    with start_worker(app, perform_ping_check=False, pool="solo", concurrency=1):
        yield
    app.conf.update(before)
    brokers.forget()


def comes_to(run: Run, *wanted: str) -> Run:
    """The run once it has one of these statuses."""
    pause = threading.Event()
    for _ in range(600):
        found = flows.fresh(run)
        if found.status in wanted:
            return found
        pause.wait(0.05)
    raise AssertionError(f"It stays {flows.fresh(run).status}: {flows.statuses(run)}.")


def through() -> Run:
    """One main job from its start to its end."""
    run = flows.start(main_job())
    comes_to(run, "waiting")
    flows.answer(run, {"approved": True})
    return comes_to(run, "passed", "failed")


def record_of(run: Run) -> list[Any]:
    """What the record says, without times and names; what runs side by side in one order."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in VOLATILE}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    facts = [(event.kind, event.path, plain(dict(event.fields))) for event in flows.events(run)]
    return sorted(facts, key=canonical_json)


def test_the_embedded_worker_takes_a_run_to_its_end(embedded_worker: EmbeddedWorker) -> None:
    run = through()

    assert run.status == "passed"
    assert set(flows.statuses(run).values()) == {"passed"}
    assert set(Attempt.objects.values_list("status", flat=True)) == {"done"}
    assert Heartbeat.objects.filter(role="worker").exists()


def test_a_celery_worker_finds_no_connection_that_it_would_close_by_its_number(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    closed: list[Any] = []
    monkeypatch.setattr(django_fixup, "_maybe_close_fd", closed.append)
    connection.ensure_connection()

    request.getfixturevalue("celery_worker")

    assert closed == []


def test_a_message_names_the_run_of_its_step(
    monkeypatch: pytest.MonkeyPatch, celery_worker: None
) -> None:
    execute, named = worker.execute, []

    def noting(attempt: int, *, run_id: UUID | None = None) -> None:
        named.append((Attempt.objects.get(pk=attempt).run_id, run_id))
        execute(attempt, run_id=run_id)

    monkeypatch.setattr(worker, "execute", noting)
    run = through()

    assert set(named) == {(run.pk, run.pk)}


def test_both_transports_give_the_same_record(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("embedded_worker")
    by_thread = through()
    request.getfixturevalue("embedded_worker").stop()
    request.getfixturevalue("celery_worker")
    by_message = through()

    assert by_message.status == by_thread.status == "passed"
    assert record_of(by_message) == record_of(by_thread)
    assert flows.kinds(by_message).count("job:start") == flows.kinds(by_thread).count("job:start")


def test_stopping_waits_for_the_steps_that_run_and_takes_no_new_one(
    embedded_worker: EmbeddedWorker,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def body(ctx: Context) -> str:
        begun.set()
        go_on.wait(20)
        return "finished"

    run = flows.start(
        pipeline(
            "long",
            [
                {"name": "long", "job": fn_job("long", body)},
                {"name": "next", "job": fn_job("next", lambda ctx: "not yet")},
            ],
        )
    )
    assert begun.wait(20)

    with flows.in_background(embedded_worker.stop) as stopping:
        stopping.join(timeout=0.2)
        assert stopping.is_alive()
        go_on.set()

    assert flows.statuses(run) == {"long": "passed", "next": "queued"}
    assert Attempt.objects.filter(status="running").count() == 0


def test_a_worker_takes_more_work_than_it_has_threads(embedded_worker: EmbeddedWorker) -> None:
    runs = [flows.start(fn_job("one", lambda ctx: "ok")) for _ in range(12)]

    assert {comes_to(run, "passed").status for run in runs} == {"passed"}


def test_a_message_that_never_knocks_is_found_by_looking(
    embedded_worker: EmbeddedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "send", lambda *_: None)

    run = flows.start(fn_job("one", lambda ctx: "ok"))

    assert comes_to(run, "passed").done_count == 1


def test_a_start_gives_back_what_its_killed_predecessor_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "refresh", lambda: None)
    monkeypatch.setattr(worker, "_names", {"role": "worker"})
    first = EmbeddedWorker(threads=1)
    first.start()
    first.stop()
    run = flows.start(fn_job("one", lambda ctx: "ok", retry_safe=True))
    flows.claimed(run)

    second = EmbeddedWorker(threads=1)
    second.start()
    comes_to(run, "passed")
    second.stop()

    assert flows.kinds(run).count("step:lost") == 1


def test_an_attempt_that_cannot_be_executed_does_not_keep_the_worker_busy(
    embedded_worker: EmbeddedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    execute: Callable[[int], None] = worker.execute

    def breaking(attempt: int, **_: Any) -> None:
        if Attempt.objects.filter(pk=attempt, run__workflow="broken").exists():
            tries.append(attempt)
            raise KeyError("what a bug would do")
        execute(attempt)

    monkeypatch.setattr(worker, "execute", breaking)
    broken = flows.start(pipeline("broken", [{"name": "a", "job": fn_job("a", str)}]))
    comes_to(flows.start(fn_job("one", lambda ctx: "ok")), "passed")

    assert len(tries) <= 2
    services.cancel_run(broken.pk, actor="user:1")
