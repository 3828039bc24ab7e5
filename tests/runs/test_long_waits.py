"""A run that waits for months (interactions.md I104): nothing of it is pruned, no limit is met."""

from __future__ import annotations

import pytest

from gates.models import Request
from runs import approval, dag, fn_job, sweep
from runs.models import Run
from tests import flows
from tests.gates.later import later

pytestmark = pytest.mark.django_db
DAYS = 120 * 86_400


def test_a_run_that_waited_for_120_days_goes_on_with_its_answer() -> None:
    run = flows.ran(
        dag(
            "g",
            {
                "ok": {"job": approval("ok", "Go on?"), "timeout_ms": 60_000},
                "ship": {"job": fn_job("ship", lambda ctx: "shipped"), "needs": ["ok"]},
            },
        )
    )
    before = flows.kinds(run)
    assert run.status == Run.Status.WAITING

    later(run.pk, DAYS)
    sweep.sweep()
    flows.forget()
    assert flows.kinds(run) == before
    assert Request.objects.get(run=run).status == "pending"
    flows.answer(run, {"approved": True})
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.PASSED
    assert flows.kinds(run)[: len(before)] == before
