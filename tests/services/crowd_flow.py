"""Workflows of which there are many: a wide one, a small one, and one of which two go at a time."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from runs import dag, fn_job, pipeline, publish
from runs.drivers.context import Context

WIDE = 1000


def waiting(ctx: Context) -> str:
    """How many steps of others wait for a worker while this one is done."""
    from runs.models import Attempt

    ready = Attempt.objects.filter(status="ready").exclude(run=UUID(ctx.run_id))
    return str(ready.count())


def going(ctx: Context) -> str:
    """How many runs of this workflow have a place while this step is done."""
    from runs.models import Run

    return str(Run.objects.filter(workflow="two-at-a-time", admission="admitted").count())


def nothing(ctx: Context) -> str:
    return "done"


def step(fn: Any) -> Any:
    return fn_job(fn.__name__, fn, retry_safe=True)


wide = dag("wide", {f"s{at}": step(nothing) for at in range(WIDE)}, concurrency=WIDE)
small = pipeline("small", [{"name": "look", "job": step(waiting)}])
two = pipeline("two-at-a-time", [{"name": name, "job": step(going)} for name in ("a", "b", "c")])

OFFERS: dict[str, tuple[Any, int | None]] = {
    "wide": (wide, None),
    "small": (small, None),
    "two-at-a-time": (two, 2),
}

for _job, _limit in OFFERS.values():
    publish(_job, title="Of a crowd", concurrency=_limit)
