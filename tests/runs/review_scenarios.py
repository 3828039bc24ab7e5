"""People who review work and answer with forms, in the same form as the other scenarios."""

from __future__ import annotations

from typing import Any, Final

from runs.drivers.context import Context
from runs.kernel.annotations import line_comments
from runs.kernel.interactions import Interaction
from runs.shapes.dag import dag, pipeline
from runs.shapes.human_review import human_review
from runs.shapes.loop import loop
from runs.shapes.person import input_job, person
from runs.shapes.steps import fn_job

APPROVED: Final = {"feedback": {"annotations": []}, "prompt": "", "decision": "approved"}
CHANGES: Final = {
    "feedback": {
        "annotations": [
            {"anchor": {"target": "a.md", "side": "new", "position": 1}, "body": "Shorter."}
        ]
    },
    "prompt": "a.md:1: Shorter.",
    "decision": "changes-requested",
}
ANSWER: Final = {"feedback": {"tone": "calm"}, "prompt": "Calm."}


def writes() -> Any:
    def body(ctx: Context) -> str:
        review: Any = ctx.last_review.data if ctx.last_review else None
        told = review["feedback"]["annotations"] if review else []
        return f"draft {ctx.iteration}: {len(told)}"

    return fn_job("write", body)


def review(target: str | None = None) -> Any:
    def change(ctx: Context) -> Any:
        came = ctx.last_outcome or next(iter((ctx.needs or {}).values()))
        return {"changes": {"a.md": {"old": "", "new": f"{came.summary}\n"}}}

    return human_review("check", "Right?", input=change, target=target)


def reviewed_loop() -> Any:
    work = loop("work", writes(), review=review(), max=2)
    stages = [{"name": "work", "job": work}, {"name": "ship", "job": writes()}]
    return pipeline("p", stages)


def reviewed_step() -> Any:
    """A review as a step of a graph: changes go back to the writer."""
    attempts: Any = fn_job("write", lambda ctx: f"attempt {ctx.graph.attempt}")
    check = {"job": review("write"), "needs": ["write"], "accepts_kickback_to": ["write"]}
    return dag("g", {"write": attempts, "check": check}, max_kickbacks=1)


def asked_first() -> Any:
    tone = person("Which tone?", Interaction("tone", {}))
    stages = [
        {"name": "tone", "job": input_job(tone, "tone", None, "A letter.")},
        {"name": "write", "job": fn_job("write", lambda ctx: ctx.needs["tone"].summary)},
    ]
    return pipeline("letter", stages)


def both_at_one_place() -> Any:
    """A question in the body and one in the review of a loop: they stand at the same path."""
    form = line_comments("desk")
    body = input_job(person("What to write?", form), "brief", None, "A letter.")
    return loop("l", body, review=human_review("check", "Right?", interaction=form), max=1)
