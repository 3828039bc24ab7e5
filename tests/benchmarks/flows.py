"""The workflows that are measured; workers import them by OBVERSA_WORKFLOWS."""

from __future__ import annotations

import time
from typing import Any

from runs import Outcome, approval, fn_job, loop, never, parallel, pipeline, publish
from tests.benchmarks.rounds import LOOP, ROUNDS


def now(ctx: Any) -> Outcome:
    """Say when this body began, by this machine's clock."""
    return Outcome(status="pass", summary="done", data={"began": time.time()})


# How many steps of a fan may run at a time.
FAN_AT_ONCE = 16

CYCLE = "gate-cycle"
publish(
    pipeline(
        CYCLE,
        [
            {"name": "a", "job": fn_job("a", now)},
            {"name": "ask", "job": approval("ask", "Go on?")},
            {"name": "b", "job": fn_job("b", now)},
        ],
    ),
    title="One gate cycle",
)


def chain_of(count: int) -> str:
    """The name of the chain with this many steps."""
    return f"chain-{count}"


for count in (20, 200, 2000):
    publish(
        pipeline(
            chain_of(count),
            [{"name": f"s{index}", "job": fn_job(f"s{index}", now)} for index in range(count)],
        ),
        title=f"{count} steps in a row",
    )

publish(loop(LOOP, fn_job("count", now), until=never, max=ROUNDS), title=f"{ROUNDS} rounds")


def fan_of(count: int) -> str:
    """The name of the fan with this many steps."""
    return f"fan-{count}"


for count in (20, 2000):
    publish(
        parallel(
            fan_of(count),
            [fn_job(f"f{index}", now) for index in range(count)],
            concurrency=FAN_AT_ONCE,
        ),
        title=f"{count} steps side by side",
    )

WIDE = "wide"
publish(
    parallel(WIDE, [fn_job(f"w{index}", now) for index in range(64)], concurrency=16),
    title="64 steps side by side",
)
