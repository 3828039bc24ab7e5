from __future__ import annotations

from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import models

from runs import services, sweep
from runs.archive import rebuild
from runs.attempts import worker
from runs.drivers.context import Context
from runs.models import Artifact, Run, Step
from runs.shapes.dag import pipeline
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job
from tests import flows
from tests.runs.scenarios import NO, SCENARIOS, YES, Scenario, asks, ok
from tests.runs.test_conformance import in_service

pytestmark = pytest.mark.django_db


def columns(row: models.Model, *but: str) -> dict[str, Any]:
    """Every column of the row."""
    names = [field.attname for field in row._meta.concrete_fields]
    return {name: getattr(row, name) for name in names if name not in but}


def rows(run: Run) -> dict[str, Any]:
    """Everything that is copied from the record of the run."""
    return {
        "run": columns(flows.fresh(run)),
        "steps": [columns(row, "id") for row in Step.objects.filter(run=run)],
        "artifacts": [columns(row, "id") for row in Artifact.objects.filter(run=run)],
    }


def spoil(run: Run) -> None:
    """Make every copy wrong."""
    Step.objects.filter(run=run).update(
        status="failed", attempt=9, summary="wrong", outcome={"x": 1}, sent_back_to="nowhere"
    )
    first = Step.objects.filter(run=run).first()
    if first is not None:
        first.delete()
    Artifact.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(
        status="queued",
        ended_at=None,
        started_at=None,
        outcome=None,
        done_count=99,
        waiting_on=["x"],
        held_reason="wrong",
    )


def unanswered(scenario: Scenario) -> Run:
    run = flows.ran(scenario.make(), name="scenario")
    while flows.sleeps(run):
        flows.wake(run)
        flows.work(run)
    return flows.fresh(run)


def with_artifacts() -> Run:
    def body(ctx: Context) -> None:
        ctx.attach("one.txt", "1", "text/plain")
        ctx.attach("two \0.txt", "2")

    return flows.ran(fn_job("keeps", body))


def sent_back_and_idle() -> Run:
    """Stopped between a send-back and the new try, so that the sender shows where it sent."""
    run = flows.ran(asks())
    flows.answer(run, NO)
    assert flows.statuses(run)["ok"] == "sent_back"
    assert flows.steps(run)["ok"].sent_back_to == "build"
    return run


def cancelled_and_resumed() -> Run:
    run = flows.ran(asks())
    services.cancel_run(run.pk, actor="user:1")
    services.resume_run(run.pk, actor="user:1")
    flows.answer(run, NO)
    flows.work(run)
    services.cancel_run(run.pk, actor="user:1")
    return run


def half_done() -> Run:
    run = flows.start(
        pipeline("half", [{"name": "a", "job": ok("a")}, {"name": "b", "job": ok("b")}])
    )
    flows.claimed(run)
    return run


def interrupted() -> Run:
    run = half_done()
    sweep.lose_all_of("")
    return run


def cancelled_at_once() -> Run:
    run = flows.start(ok("alone"))
    services.cancel_run(run.pk, actor="user:1")
    return run


def held() -> Run:
    job = asks()
    run = flows.start(job)
    flows.offer(ok("asks"))
    flows.work(run)
    assert flows.fresh(run).held_reason
    return run


MADE: dict[str, Callable[[], Run]] = {
    **{name: partial(in_service, one) for name, one in SCENARIOS.items()},
    **{f"{name}, unanswered": partial(unanswered, one) for name, one in SCENARIOS.items()},
    "artifacts": with_artifacts,
    "sent back": sent_back_and_idle,
    "cancelled and resumed": cancelled_and_resumed,
    "half done": half_done,
    "interrupted": interrupted,
    "cancelled at once": cancelled_at_once,
    "held": held,
}


@pytest.mark.parametrize("name", MADE)
def test_every_row_can_be_made_anew_from_the_record(name: str) -> None:
    run = MADE[name]()
    before = rows(run)

    assert rebuild.rebuild(run.pk) == 0
    assert rows(run) == before

    spoil(run)
    assert rebuild.rebuild(run.pk) > 0
    assert rows(run) == before
    assert rebuild.rebuild(run.pk) == 0


def test_rows_that_the_record_does_not_know_are_taken_away() -> None:
    run = flows.ran(ok("alone"))
    Step.objects.create(run=run, path=["not", "there"], name="x", kind="fn", position=9)

    assert rebuild.rebuild(run.pk) == 1

    assert list(flows.steps(run)) == ["alone"]


def test_a_rebuilt_step_keeps_its_key() -> None:
    run = flows.ran(ok("alone"))
    before = Step.objects.get(run=run).pk
    Step.objects.update(status="failed")

    rebuild.rebuild(run.pk)

    assert Step.objects.get(run=run).pk == before


def test_the_command_rebuilds_all_runs_or_those_that_are_named() -> None:
    one, two = flows.ran(ok("one")), flows.ran(ok("two"))
    Step.objects.update(status="failed")
    told = StringIO()

    call_command("rebuild", str(one.pk), stdout=told)
    assert flows.statuses(one) == {"one": "passed"}
    assert flows.statuses(two) == {"two": "failed"}
    assert "runs=1 repaired=1" in told.getvalue()

    call_command("rebuild", stdout=told)
    assert flows.statuses(two) == {"two": "passed"}
    assert "runs=2 repaired=1" in told.getvalue()


@pytest.mark.parametrize("given", ["nothing", str(UUID(int=7))])
def test_the_command_refuses_what_is_no_run(given: str) -> None:
    with pytest.raises(CommandError):
        call_command("rebuild", given)


def test_other_apps_make_their_rows_anew_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "_also", [])
    seen: list[Run] = []
    rebuild.also(lambda run: seen.append(run) or 4)  # type: ignore[func-returns-value]  # short
    run = flows.ran(ok("alone"))

    assert rebuild.rebuild(run.pk) == 4
    assert seen == [run]


# --- what lists show -----------------------------------------------------------------------------


def test_a_step_shows_how_far_it_is() -> None:
    run = flows.start(asks())
    assert flows.statuses(run) == {"build": "queued", "ok": "idle", "ship": "idle"}

    attempt = flows.claimed(run)
    assert flows.statuses(run)["build"] == "running"
    assert flows.steps(run)["build"].started_at is not None
    sweep.lose(attempt, whatever_the_lease=True)
    assert flows.statuses(run)["build"] == "waiting"
    flows.answer(run, {"action": "finished"})

    assert flows.statuses(run) == {"build": "passed", "ok": "waiting", "ship": "idle"}
    asked = flows.steps(run)["ok"]
    assert asked.request_id == flows.pending(run)[0].request_id
    flows.answer(run, YES)
    flows.work(run)
    assert flows.statuses(run) == {"build": "passed", "ok": "passed", "ship": "passed"}
    assert flows.steps(run)["ship"].summary == "ship done"


def test_progress_counts_the_steps_a_person_sees() -> None:
    run = flows.start(SCENARIOS["six deep"].make())
    assert (run.done_count, run.total_count) == (0, 7)

    for expected in range(1, 8):
        worker.execute(flows.ready(run)[0], onward=0)
        assert flows.fresh(run).done_count == expected

    assert flows.fresh(run).status == "passed"


def test_times_of_a_run_are_those_of_its_events() -> None:
    run = flows.ran(ok("alone"))

    events = {event.kind: event.ts for event in flows.events(run)}

    assert run.started_at is not None
    assert run.ended_at is not None
    assert run.started_at.timestamp() * 1000 == events["job:start"]
    assert run.ended_at.timestamp() * 1000 == events["run:end"]
    assert run.changed_at == run.ended_at


def test_rows_follow_a_review_that_has_the_name_of_the_body_and_other_steps() -> None:
    body = pipeline("g", [{"name": "a", "job": ok("a")}, {"name": "b", "job": ok("b")}])
    run = flows.ran(loop("l", body, review=pipeline("g", [{"name": "a", "job": ok("a")}])))

    assert flows.fresh(run).status == "passed"
    # The place of `b` is one of the body, and the graph that stands there now has no such step.
    assert Step.objects.get(run=run, path=["l", "g", "b"]).status == "idle"
    assert rebuild.rebuild(run.pk) == 0
