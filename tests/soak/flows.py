"""The work that is done while everything is killed, and what each run has to come to.

An effect of a step is a line in a file that nobody takes back (tests/faults/scene.py); an effect of
an action is a POST that reaches a receiver outside. The parameters of a run say what people answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests

from runs import (
    LoopError,
    ToolRefused,
    approval,
    dag,
    fn_job,
    loop,
    pipeline,
    predicate,
    publish,
    review_panel,
)
from runs.drivers.context import Context
from runs.shapes.tool import ToolCall, tool
from tests.faults import scene, work

PARTS = 8
TRIES = 3
LATE_SECONDS = 6.0
# One that lasts over several kills, for pages to stay with it.
ROUNDS, ROUND_MS = 20, 800
Params = Mapping[str, Any]


def yes(params: Params) -> bool:
    """What people answer in this run."""
    return bool(params["verdict"] == "yes")


# --- steps ---------------------------------------------------------------------------------------


def flaky(ctx: Context) -> str:
    """The other side is away at first; the work is done under one key however often it is tried."""
    scene.note("tries", ctx.idempotency_key)
    if scene.notes("tries").count(ctx.idempotency_key) < TRIES:
        raise LoopError("ENGINE", "the other side is away")
    return work.by_key(ctx)


def form(ctx: Context) -> str:
    """Ask, and do what was said once."""
    (colour,) = ctx.ask_questions(["Which colour?"])
    work.by_key(ctx)
    return f"painted {colour}"


def _post(name: str) -> Callable[[dict[str, Any], ToolCall], dict[str, str]]:
    def post(given: dict[str, Any], call: ToolCall) -> dict[str, str]:
        facts = {"key": call.idempotency_key, "tool": name, "run": given["run"]}
        requests.post(os.environ["OBVERSA_SOAK_OUTSIDE"], json=facts, timeout=20).raise_for_status()
        return {"posted": given["run"]}

    return post


def _acts(name: str) -> Callable[[Context], str]:
    def body(ctx: Context) -> str:
        try:
            ctx.call_tool(name, {"run": ctx.run_id})
        except ToolRefused as refused:
            return f"not done: {refused.reason}"
        return "done"

    return body


for _tool, _recovery in (("soak_replay", "replay"), ("soak_none", "none")):
    tool(
        _post(_tool),
        name=_tool,
        input={"type": "object", "properties": {"run": {"type": "string"}}, "required": ["run"]},
        effect="external-write",
        category="publish",
        risk="medium",
        summary="Publish {run}",
        recovery=_recovery,  # type: ignore[arg-type]  # one of the two
    )


# --- workflows -----------------------------------------------------------------------------------


def _job(label: str, effect: Callable[[Context], Any] = work.by_key, **options: Any) -> Any:
    return fn_job(label, effect, retry_safe=True, **options)


def _step(label: str, effect: Callable[[Context], Any] = work.by_key, **options: Any) -> Any:
    return {"name": label, "job": _job(label, effect, **options)}


def _agrees(ctx: Context, last: Any) -> bool:
    return True


_reviewers = [{"name": name, "review": _agrees} for name in ("first", "second", "third")]
_parts = {
    f"part{number}": {"job": _job(f"part{number}"), "needs": "plan"} for number in range(PARTS)
}
_ship = _step("ship")
JOBS = {
    "soak-board": pipeline(
        "soak-board",
        [
            _step("draft"),
            {"name": "ok", "job": approval("ok", "Publish it?", needed=2)},
            _ship,
        ],
    ),
    "soak-fan": dag(
        "soak-fan",
        {
            "plan": _job("plan"),
            **_parts,
            "panel": {
                "job": review_panel(label="panel", reviewers=_reviewers, pass_=2),
                "needs": list(_parts),
            },
            "join": {"job": _job("join"), "needs": "panel"},
        },
    ),
    "soak-flaky": pipeline(
        "soak-flaky",
        [_step("call", flaky, retry={"max_attempts": 8, "base_delay_ms": 200}), _ship],
    ),
    "soak-late": pipeline(
        "soak-late",
        [
            {
                "name": "ok",
                "job": approval(
                    "ok",
                    "Ship it, unless somebody says no?",
                    expires_in_seconds=LATE_SECONDS,
                    on_expiry="answer",
                    default_answer={"approved": True},
                ),
            },
            _ship,
        ],
    ),
    "soak-form": pipeline("soak-form", [_step("paint", form), _ship]),
    "soak-replay": pipeline("soak-replay", [_step("post", _acts("soak_replay"))]),
    "soak-none": pipeline("soak-none", [_step("post", _acts("soak_none"))]),
    "soak-cancel": pipeline(
        "soak-cancel",
        [_step("draft"), {"name": "ok", "job": approval("ok", "Nobody answers this.")}, _ship],
    ),
}
JOBS["soak-watch"] = pipeline(
    "soak-watch",
    [
        {
            "name": "work",
            "job": loop(
                "rounds",
                _job("round"),
                until=predicate(lambda ctx, last: ctx.iteration >= ROUNDS, "enough"),
                delay_ms=ROUND_MS,
            ),
        },
        _ship,
    ],
)
_PARAMS = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["verdict"],
}
for _name, _made in JOBS.items():
    publish(_made, title=_name, params=_PARAMS)


# --- what they come to ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One workflow of the soak: how often it comes, how its runs end, what they leave outside."""

    weight: int
    effects: Callable[[Params], tuple[str, ...]] = lambda params: ()
    posts: Callable[[Params], int] = lambda params: 0
    status: Callable[[Params], str] = lambda params: "passed"
    refusals: bool = False


def _after_yes(*marks: str) -> Callable[[Params], tuple[str, ...]]:
    return lambda params: (*marks, "ship/1.1") if yes(params) else marks


PLANS: dict[str, Plan] = {
    work.SAFE: Plan(weight=3),
    work.UNSAFE: Plan(weight=3),
    "soak-board": Plan(
        weight=3,
        effects=_after_yes("draft/1.1"),
        status=lambda params: "passed" if yes(params) else "failed",
        refusals=True,
    ),
    "soak-fan": Plan(
        weight=2,
        effects=lambda params: (
            "plan/1.1", "join/1.1", *(f"part{number}/1.1" for number in range(PARTS)),
        ),
    ),
    "soak-flaky": Plan(weight=2, effects=lambda params: ("call/1.1", "ship/1.1")),
    "soak-late": Plan(weight=2, effects=lambda params: ("ship/1.1",)),
    "soak-form": Plan(weight=2, effects=lambda params: ("paint/1.1", "ship/1.1")),
    "soak-replay": Plan(weight=2, posts=lambda params: int(yes(params)), refusals=True),
    "soak-none": Plan(weight=2, posts=lambda params: int(yes(params)), refusals=True),
    "soak-cancel": Plan(
        weight=1, effects=lambda params: ("draft/1.1",), status=lambda params: "cancelled"
    ),
    "soak-watch": Plan(
        weight=1,
        effects=lambda params: (
            *(f"work/rounds/1.{number}" for number in range(1, ROUNDS + 1)), "ship/1.1",
        ),
    ),
}  # fmt: skip


def effects_of(run_id: object, name: str, params: Params) -> list[str]:
    """The lines that a whole run leaves, each once."""
    if name in (work.SAFE, work.UNSAFE):
        return work.expected(run_id, name)
    return sorted(f"{run_id}/{name}/{mark}" for mark in PLANS[name].effects(params))
