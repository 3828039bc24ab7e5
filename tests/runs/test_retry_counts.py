"""Tries are counted in the record: no crash makes a step begin to count anew (I85-I91)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import dag, fn_job, run
from runs.drivers.context import Context
from runs.kernel.errors import LoopError
from runs.models import Run
from tests import flows

QUICK = {"base_delay_ms": 1, "max_delay_ms": 1, "max_attempts": 5}


class Away(BaseException):
    """The process is gone."""


def failing(tries: list[str]) -> Any:
    def body(ctx: Context) -> str:
        tries.append(ctx.idempotency_key)
        raise LoopError("ENGINE", "the other side is away")

    return dag("g", {"call": {"job": fn_job("call", body), "retry": QUICK}})


@pytest.mark.django_db
def test_a_service_that_dies_while_it_waits_goes_on_with_the_next_try() -> None:
    tries: list[str] = []
    started = flows.ran(failing(tries))
    for _ in range(2):
        flows.wake(started)
        flows.work(started)
    assert (len(tries), flows.fresh(started).status) == (3, Run.Status.RETRY_PENDING)

    flows.forget()
    while flows.sleeps(started):
        flows.wake(started)
        flows.work(started)

    told = [event.fields for event in flows.events(started, "run.retry-pending")]
    assert [(one["attempt"], one["nextAttempt"]) for one in told] == [
        (1, 2), (2, 3), (3, 4), (4, 5),
    ]  # fmt: skip
    assert (len(tries), len(set(tries))) == (5, 1)
    assert flows.fresh(started).status == Run.Status.FAILED


def test_a_script_that_dies_while_it_waits_goes_on_with_the_next_try(tmp_path: Path) -> None:
    tries: list[str] = []
    whole = tmp_path / "whole"
    run(failing(tries), record_to=whole)
    lines = whole.read_text().splitlines(keepends=True)
    third = [at for at, line in enumerate(lines) if '"run.retry-pending"' in line][2]
    cut = tmp_path / "cut"
    cut.write_text("".join(lines[: third + 1]))
    tries.clear()

    result = run(failing(tries), record_to=cut, resume=True)

    told = [event.fields for event in result.events if event.kind == "run.retry-pending"]
    assert [one["attempt"] for one in told] == [4]
    assert len(tries) == 2
    assert result.outcome.status == "fail"
