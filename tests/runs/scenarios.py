"""Workflows that meet every rule once, and the answers that people give in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runs.drivers.context import Context
from runs.kernel.conditions import failed, passed
from runs.kernel.outcomes import kickback
from runs.kernel.questions import Question
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job, gate_job
from tests.runs import loop_scenarios as loops
from tests.runs import review_scenarios as people
from tests.runs import team_scenarios as teams

YES = {"approved": True}
NO = {"approved": False, "note": "not yet"}


@dataclass(frozen=True)
class Scenario:
    """`make` builds the job anew; `answers` are given in turn to whatever is asked."""

    make: Callable[[], Any]
    ends: str
    answers: tuple[dict[str, Any], ...] = ()


def ok(name: str) -> Any:
    return fn_job(name, lambda ctx: f"{name} done")


def breaks(name: str) -> Any:
    def body(ctx: Context) -> None:
        raise ValueError(f"{name} broke")

    return fn_job(name, body)


def sends_back(to: str, times: int) -> Any:
    def body(ctx: Context) -> Any:
        attempt = ctx.graph.attempt if ctx.graph is not None else 1
        return kickback(to=to, reason=f"round {attempt}") if attempt <= times else "good"

    return fn_job("review", body)


def reworked() -> Any:
    def build(ctx: Context) -> str:
        review = ctx.last_review
        return "first" if review is None else f"after: {review.summary}"

    return fn_job("build", build)


def send_back(times: int, limit: int) -> Any:
    return pipeline(
        "send-back",
        [
            {"name": "build", "job": reworked()},
            {"name": "check", "job": ok("check")},
            {
                "name": "review",
                "job": sends_back("build", times),
                "accepts_kickback_to": ["build"],
            },
            {"name": "ship", "job": ok("ship")},
        ],
        max_kickbacks=limit,
    )


def optional() -> Any:
    return dag(
        "optional",
        {
            "lint": {"job": breaks("lint"), "optional": True},
            "build": {"job": ok("build"), "needs": ["lint"]},
        },
    )


def conditional() -> Any:
    return dag(
        "conditional",
        {
            "try": {"job": breaks("try"), "optional": True},
            "mend": {"job": ok("mend"), "needs": ["try"], "when": failed("try")},
            "praise": {"job": ok("praise"), "needs": ["try"], "when": passed("try")},
            "asked": {"job": ok("asked"), "when": lambda ctx, last: True},
            "not-asked": {"job": ok("not-asked"), "when": lambda ctx, last: False},
            "last": {"job": ok("last"), "needs": ["mend", "praise", "asked", "not-asked"]},
        },
    )


def broken_condition() -> Any:
    def when(ctx: Context, last: Any) -> bool:
        raise ValueError("no idea")

    return dag("odd", {"a": {"job": ok("a"), "when": when}, "b": ok("b")}, stop_on_error=False)


def nested(depth: int = 6) -> Any:
    job = pipeline(
        "level-0", [{"name": "do", "job": ok("do")}, {"name": "then", "job": ok("then")}]
    )
    for level in range(1, depth):
        job = pipeline(
            f"level-{level}", [{"name": "in", "job": job}, {"name": "out", "job": ok("out")}]
        )
    return job


def nested_send_back() -> Any:
    inner = pipeline(
        "inner",
        [
            {"name": "build", "job": reworked()},
            {"name": "review", "job": sends_back("build", 1), "accepts_kickback_to": ["build"]},
        ],
        max_kickbacks=1,
    )
    return pipeline(
        "outer",
        [
            {"name": "inner", "job": inner},
            {"name": "review", "job": sends_back("inner", 1), "accepts_kickback_to": ["inner"]},
        ],
        max_kickbacks=2,
    )


def side_by_side() -> Any:
    return dag("wide", {f"n{number}": ok(f"n{number}") for number in range(7)}, concurrency=2)


def fails() -> Any:
    return pipeline(
        "fails",
        [
            {"name": "a", "job": ok("a")},
            {"name": "b", "job": breaks("b")},
            {"name": "c", "job": ok("c")},
        ],
    )


def asks(target: str | None = "build", *, on_yes: str = "ship") -> Any:
    return pipeline(
        "asks",
        [
            {"name": "build", "job": reworked()},
            {
                "name": "ok",
                "job": approval("ok", "Ship it?", target=target, per_attempt=True),
                "accepts_kickback_to": ["build"] if target else [],
            },
            {"name": on_yes, "job": ok(on_yes)},
        ],
        max_kickbacks=1,
    )


def two_questions() -> Any:
    return dag(
        "two",
        {
            "left": approval("left", "Left?"),
            "right": approval("right", "Right?"),
            "work": ok("work"),
            "both": {"job": ok("both"), "needs": ["left", "right", "work"]},
        },
    )


def computed_question() -> Any:
    def about(ctx: Context) -> Any:
        return {"commit": "abc", "needs": sorted(ctx.needs or {})}

    return pipeline(
        "computed",
        [
            {"name": "a", "job": ok("a")},
            {"name": "ok", "job": approval("ok", "This one?", input=about)},
        ],
    )


def asks_deep_inside() -> Any:
    job = pipeline("g0", [{"name": "ok", "job": approval("ok", "Deep?")}])
    for level in range(1, 4):
        job = pipeline(f"g{level}", [{"name": "in", "job": job}, {"name": "end", "job": ok("end")}])
    return job


def checks() -> Any:
    return pipeline(
        "checks",
        [
            {"name": "gate", "job": gate_job("gate", lambda ctx, last: True)},
            {"name": "b", "job": ok("b")},
        ],
    )


def step_that_asks() -> Any:
    """Two forms, one after the other, in the middle of a graph."""

    def build(ctx: Context) -> str:
        colour, sizes = ctx.ask_questions(
            [
                Question("Which colour?", key="colour", options=["red", "blue"]),
                Question("Which sizes?", key="sizes", options=["S", "M"], multiple=True),
            ]
        )
        (name,) = ctx.ask_questions([f"A name for the {colour} one?"], about={"colour": colour})
        return f"{name}: {colour} {sizes}"

    return pipeline(
        "asks",
        [
            {"name": "build", "job": fn_job("build", build)},
            {"name": "review", "job": sends_back("build", 1), "accepts_kickback_to": ["build"]},
        ],
        max_kickbacks=2,
    )


def asks_every_round() -> Any:
    """A job of a loop that asks anew in each of its rounds."""

    def body(ctx: Context) -> str:
        (word,) = ctx.ask_questions(["A word?"], per_attempt=True)
        return str(word)

    return loop("l", fn_job("body", body), until=loops.from_round(2))


SCENARIOS: dict[str, Scenario] = {
    "one job": Scenario(lambda: ok("alone"), "pass"),
    "one job that breaks": Scenario(lambda: breaks("alone"), "fail"),
    "one question": Scenario(lambda: approval("only", "Well?"), "pass", (YES,)),
    "one question, no": Scenario(lambda: approval("only", "Well?"), "fail", (NO,)),
    "send back once": Scenario(lambda: send_back(1, 2), "pass"),
    "send back until the budget is spent": Scenario(lambda: send_back(9, 2), "fail"),
    "optional": Scenario(optional, "pass"),
    "conditions": Scenario(conditional, "pass"),
    "condition that breaks": Scenario(broken_condition, "fail"),
    "six deep": Scenario(nested, "pass"),
    "send back in a graph and around it": Scenario(nested_send_back, "pass"),
    "side by side": Scenario(side_by_side, "pass"),
    "failing": Scenario(fails, "fail"),
    "check": Scenario(checks, "pass"),
    "approved": Scenario(asks, "pass", (YES,)),
    "refused, then approved": Scenario(asks, "pass", (NO, YES)),
    "refused too often": Scenario(asks, "fail", (NO, NO)),
    "refused without a way back": Scenario(lambda: asks(None), "fail", (NO,)),
    "two questions": Scenario(two_questions, "pass", (YES, YES)),
    "two questions, one no": Scenario(two_questions, "fail", (YES, NO)),
    "question from a function": Scenario(computed_question, "pass", (YES,)),
    "question deep inside": Scenario(asks_deep_inside, "pass", (YES,)),
    "step that asks": Scenario(
        step_that_asks,
        "pass",
        ({"colour": "red", "sizes": ["S", "M"]}, {"answer": "Rosa"}),
    ),
    "one job that asks": Scenario(
        lambda: fn_job("alone", lambda ctx: str(ctx.ask_questions(["Well?"]))),
        "pass",
        ({"answer": "yes"},),
    ),
    "loop that asks": Scenario(asks_every_round, "pass", ({"answer": "a"}, {"answer": "b"})),
    "loop that a person reviews": Scenario(
        people.reviewed_loop, "pass", (people.CHANGES, people.APPROVED)
    ),
    "loop that a person does not approve": Scenario(
        people.reviewed_loop, "fail", (people.CHANGES, people.CHANGES)
    ),
    "step that a person sends back": Scenario(
        people.reviewed_step, "pass", (people.CHANGES, people.APPROVED)
    ),
    "person who is asked first": Scenario(people.asked_first, "pass", (people.ANSWER,)),
    "person who writes and person who reviews": Scenario(
        people.both_at_one_place, "pass", ({**people.ANSWER, "feedback": {}}, people.APPROVED)
    ),
    "panel that sends back": Scenario(loops.panel_reviews, "pass"),
    "panel that reviews a loop": Scenario(loops.panel_loop, "fail"),
    "loop": Scenario(lambda: loop("l", loops.writes(), until=loops.from_round(3)), "pass"),
    "loop of graphs with a panel": Scenario(loops.reviewed_graph, "pass"),
    "loop whose names are all the same": Scenario(loops.same_names, "pass"),
    "loops and graphs in each other": Scenario(loops.nested, "pass"),
    "loop that is sent back": Scenario(loops.sent_back_loop, "pass"),
    "loop with every option": Scenario(loops.full, "pass"),
    "loop whose body raises": Scenario(lambda: loop("l", loops.raises_at_first), "pass"),
    "loop whose check raises": Scenario(loops.broken_check, "fail"),
    "loop that stalls": Scenario(loops.stalls, "exhausted"),
    "loop that runs out": Scenario(
        lambda: loop("l", loops.writes(), review=loops.reviews(9), max=2), "fail"
    ),
    "loop a person reviews": Scenario(loops.person_reviews, "pass", (NO, YES)),
    "loop a person refuses to the end": Scenario(loops.person_reviews, "fail", (NO, NO, NO)),
    "stage that a panel reviews and a command sends back": Scenario(
        lambda: teams.reviewed(2, 3), "pass"
    ),
    "stage whose refinements run out": Scenario(lambda: teams.reviewed(refine=1), "fail"),
    "stage that a person reviews": Scenario(teams.by_a_person, "pass", (teams.NO, teams.YES, YES)),
    "stage that is a panel": Scenario(teams.by_a_panel_stage, "pass"),
    "loop with a person in its body": Scenario(loops.person_works, "pass", (YES, YES)),
}
