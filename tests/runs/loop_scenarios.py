"""Loops that meet every rule once, in the same form as the other scenarios."""

from __future__ import annotations

from typing import Any

from runs.drivers.context import Context
from runs.kernel.conditions import predicate
from runs.kernel.outcomes import Outcome, kickback, revision_request
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.loop import loop
from runs.shapes.panel import review_panel
from runs.shapes.steps import fn_job


def writes(name: str = "write") -> Any:
    def body(ctx: Context) -> str:
        review = ctx.last_review.summary if ctx.last_review else "no review"
        gate = ctx.last_gate.reason if ctx.last_gate else "no gate"
        before = ctx.last_outcome.summary if ctx.last_outcome else "nothing"
        return f"{name} {ctx.iteration} after {review}, {gate}, {before!r:.20}"

    return fn_job(name, body)


def from_round(number: int) -> Any:
    return predicate(lambda ctx, last: ctx.iteration >= number, f"round {number}")


def reviews(rejections: int) -> Any:
    def body(ctx: Context) -> Any:
        last = ctx.last_outcome.summary if ctx.last_outcome else ""
        if ctx.iteration > rejections:
            return f"good: {last:.10}"
        return revision_request(
            target="plan", reason=f"round {ctx.iteration}", findings=[{"evidence": last}]
        )

    return fn_job("check", body)


def reviewed_graph() -> Any:
    body = pipeline("work", [{"name": "a", "job": writes("a")}, {"name": "b", "job": writes("b")}])
    review = dag("panel", {"x": reviews(1), "y": {"job": fn_job("y", lambda ctx: None)}})
    refine = loop("refine", body, review=review, max=4)
    stages = [{"name": "plan", "job": writes("plan")}, {"name": "refine", "job": refine}]
    return pipeline("p", [*stages, {"name": "ship", "job": writes("ship")}])


def same_names() -> Any:
    return loop("g", dag("g", {"g": writes()}), review=dag("g", {"g": reviews(1)}))


def nested() -> Any:
    job: Any = loop("l0", writes(), until=from_round(2))
    for level in range(1, 4):
        inner = pipeline(f"g{level}", [{"name": "in", "job": job}, {"name": "do", "job": writes()}])
        job = loop(f"l{level}", inner, until=from_round(2))
    return job


def sent_back_loop() -> Any:
    """A loop as the target of a send-back runs from its first round again."""

    def check(ctx: Context) -> Any:
        first = ctx.graph is None or ctx.graph.attempt == 1
        return kickback("build", "once more") if first else "good"

    build = loop("build", writes(), until=from_round(2))
    last = {"name": "check", "job": fn_job("check", check), "accepts_kickback_to": ["build"]}
    return pipeline("p", [{"name": "build", "job": build}, last], max_kickbacks=1)


def person_reviews() -> Any:
    return loop("l", writes(), review=approval("ok", "Good?", per_attempt=True), max=3)


def person_works() -> Any:
    body = pipeline("g", [{"name": "ok", "job": approval("ok", "Well?", per_attempt=True)}])
    return loop("l", body, until=from_round(2))


def full() -> Any:
    """Every option at once."""
    return loop(
        "l",
        writes(),
        start=from_round(0),
        check_first=True,
        until=from_round(2),
        stop_on=from_round(9),
        review=reviews(3),
        max=9,
        max_review_restarts=5,
        no_progress={"window": 5, "signal": lambda ctx: ctx.iteration, "workspace": False},
        delay_ms=5,
        retry={"max_consecutive": 2, "backoff_ms": 5},
        on_iteration=lambda ctx: ctx.log(f"after {ctx.iteration}"),
        on_complete=lambda ctx: ctx.log("over"),
    )


def raises_at_first(ctx: Context) -> Outcome:
    """A hand-written job, whose errors are failed rounds."""
    if ctx.iteration < 3:
        raise OSError("the disk is away")
    return Outcome(status="pass")


def broken_check() -> Any:
    def until(ctx: Context, last: Any) -> bool:
        raise ValueError("no idea")

    return loop("l", writes(), until=until)


def stalls() -> Any:
    rule = {"window": 2, "signal": lambda ctx: "same", "workspace": False}
    return loop("l", writes(), until=from_round(99), no_progress=rule)


def _reviewer(name: str, good_from: int) -> Any:
    def body(ctx: Context) -> Any:
        turn = ctx.iteration or (1 if ctx.graph is None else ctx.graph.attempt)
        if turn >= good_from:
            return f"{name} agrees"
        return revision_request(reason=f"{name}: no", findings=[{"evidence": name}])

    return {"name": name, "job": fn_job(name, body)}


def panel_reviews() -> Any:
    """The panel is a node, so its reviewers begin anew with every attempt of it."""
    tried: list[int] = []

    def strict(ctx: Context) -> Any:
        tried.append(1)
        return "yes" if len(tried) > 1 else revision_request(reason="once more")

    reviewers = [{"name": "strict", "job": fn_job("strict", strict)}, _reviewer("easy", 1)]
    review = review_panel(label="review", reviewers=reviewers, target="build")
    stages = [
        {"name": "build", "job": writes("build")},
        {"name": "review", "job": review, "accepts_kickback_to": ["build"]},
    ]
    return pipeline("p", stages, max_kickbacks=1)


def panel_loop() -> Any:
    review = review_panel(reviewers=[_reviewer("a", 9), _reviewer("b", 1)], pass_=2)
    return loop("l", writes(), review=review, max=2)
