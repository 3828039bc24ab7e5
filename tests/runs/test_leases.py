"""What a step is told by the lease of its start."""

from __future__ import annotations

from typing import Any

import pytest

from runs import record, services
from runs.attempts import leases, worker
from runs.drivers.context import Context
from runs.models import Run
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from tests import flows

pytestmark = pytest.mark.django_db


def one(fn: Any) -> Any:
    """A workflow of the one step `fn`."""
    return pipeline("one", [{"name": "a", "job": fn_job("a", fn)}])


def test_leases_tell_a_step_of_its_cancelled_run() -> None:
    seen: list[bool] = []

    def body(ctx: Context) -> str:
        services.cancel_run(ctx.port.due.run_id, actor="user:1")  # type: ignore[attr-defined]  # a worker's port
        seen.append(ctx.signal.is_set())
        return "did it anyway"

    run = flows.ran(one(body))

    assert seen == [True]
    assert run.status == "cancelled"
    assert flows.kinds(run)[-1] == "run:end"


def test_a_cancel_by_another_process_reaches_the_step_at_the_next_renewal() -> None:
    seen: list[bool] = []

    def body(ctx: Context) -> str:
        start: Any = ctx.port
        Run.objects.filter(pk=start.due.run_id).update(cancel_requested_at=record.database_now())
        leases.leases.renew({start.due.pk: leases.Held(start.due.run_id, start.fence, ctx.signal)})
        seen.append(ctx.signal.is_set())
        return "done"

    flows.ran(one(body))

    assert seen == [True]


def test_no_step_of_a_test_that_commits_nothing_is_stopped_by_a_beat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "BEATS_PER_LEASE", 3000)
    monkeypatch.setattr(worker, "leases", leases.Leases())
    stopped: list[bool] = []

    run = flows.ran(one(lambda ctx: stopped.append(ctx.signal.wait(0.3))))

    assert stopped == [False]
    assert flows.fresh(run).status == "passed"
