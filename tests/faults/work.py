"""The work that is done while faults happen: steps with effects, a send-back, a loop, a question.

An effect is a line in a file, named by the idempotency key of its step. A step that says it may
be repeated keeps its promise as a payment service would: by the key. One that does not say so
has its effect as often as it is called.
"""

from __future__ import annotations

import os
from typing import Any

from runs import approval, dag, fn_job, kickback, loop, pipeline, predicate, publish
from runs.drivers.context import Context
from tests.faults import scene

SAFE, UNSAFE, FORKED = "faults-safe", "faults-unsafe", "faults-forked"
ROUNDS = 3
PARTS = 6


def by_key(ctx: Context) -> str:
    """An effect that may be asked for twice."""
    _at("before", ctx)
    scene.note_once("effects", ctx.idempotency_key)
    _at("after", ctx)
    return "done"


def blindly(ctx: Context) -> str:
    """An effect that happens as often as it is asked for."""
    _at("before", ctx)
    scene.note("effects", ctx.idempotency_key)
    _at("after", ctx)
    return "done"


def _at(moment: str, ctx: Context) -> None:
    """Say who is here, and stay for as long as the suite wants to look at it."""
    scene.note(moment, f"{os.getppid()} {ctx.idempotency_key}")
    scene.stay_while(f"hold-{moment}", ctx.idempotency_key)


def review(ctx: Context) -> Any:
    assert ctx.graph is not None
    return "good" if ctx.graph.attempt > 1 else kickback(to="build", reason="once more")


def job(name: str, effect: Any, *, retry_safe: bool) -> Any:
    """The whole of it; `build` and all behind it are done twice."""

    def step(label: str) -> Any:
        return fn_job(label, effect, retry_safe=retry_safe)

    rounds = loop(
        "rounds",
        step("round"),
        until=predicate(lambda ctx, last: ctx.iteration >= ROUNDS, "enough"),
        delay_ms=20,
    )
    return pipeline(
        name,
        [
            {"name": "build", "job": step("build")},
            {"name": "aside", "job": step("aside"), "needs": []},
            {"name": "work", "job": rounds, "needs": ["build"]},
            {
                "name": "review",
                "job": fn_job("review", review, retry_safe=True),
                "needs": ["work", "aside"],
                "accepts_kickback_to": ["build"],
            },
            {"name": "ok", "job": approval("ok", "Ship it?")},
            {"name": "ship", "job": step("ship")},
        ],
        max_kickbacks=1,
    )


def forked(name: str) -> Any:
    """Many steps of one run at the same time, so that their ends meet."""
    parts = {f"part{number}": {"job": _blind(f"part{number}")} for number in range(PARTS)}
    return dag(name, {**parts, "ship": {"job": _blind("ship"), "needs": list(parts)}})


def _blind(label: str) -> Any:
    return fn_job(label, blindly, retry_safe=False)


def expected(run_id: object, name: str) -> list[str]:
    """The effects of one whole run, each once."""
    if name == FORKED:
        marks = [f"part{number}/1.1" for number in range(PARTS)]
        return sorted(f"{run_id}/{name}/{mark}" for mark in [*marks, "ship/1.1"])
    marks = ["aside/1.1", "build/1.1", "build/1.2", "ship/1.1"]
    starts = [f"{start}.{number}" for start in (1, 2) for number in range(1, ROUNDS + 1)]
    return sorted(
        f"{run_id}/{name}/{mark}" for mark in marks + [f"work/rounds/{s}" for s in starts]
    )


for _name, _effect in ((SAFE, by_key), (UNSAFE, blindly)):
    publish(job(_name, _effect, retry_safe=_name == SAFE), title=_name)
publish(forked(FORKED), title=FORKED)
