"""Loops whose rounds lead nowhere, and loops and graphs in each other (runs.md R168-R173)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from runs import Outcome, dag, fn_job, kickback, loop, pipeline, run
from tests.drivers.test_loops import in_round, of, rejects, rounds, step


def test_a_window_of_flat_rounds_stalls_r168() -> None:
    job = loop("l", step(), until=in_round(99), no_progress={"window": 2, "signal": _two_states})
    result = run(job)
    # Rounds 1 and 2 reach states not seen before, 3 and 4 do not.
    assert rounds(result) == 4
    assert result.outcome.status == "exhausted"
    assert result.outcome.stall is not None
    assert list(result.outcome.stall["iterations"]) == [3, 4]  # type: ignore[arg-type]  # a list of rounds
    (stalled,) = of(result, "loop:stall")
    assert stalled["iteration"] == 4


def _two_states(ctx: Any) -> int:
    return int(ctx.iteration % 2)


def test_confidence_that_grows_is_progress_r168() -> None:
    body = fn_job("b", lambda ctx: Outcome(status="pass", confidence=min(0.1 * ctx.iteration, 0.5)))
    result = run(loop("l", body, until=in_round(99), no_progress={"window": 3}))
    assert rounds(result) == 8


def test_a_gate_that_says_something_new_is_progress_when_asked_for_r168() -> None:
    def gate(ctx: Any, last: Outcome | None) -> dict[str, Any]:
        return {"met": False, "reason": "red", "output": f"{min(ctx.iteration, 3)} tests"}

    result = run(loop("l", step(), until=gate, no_progress={"window": 2, "gate": True}))
    assert rounds(result) == 5


def test_rounds_without_any_evidence_warn_once_and_never_stall_r168(tmp_path: Path) -> None:
    job = loop("l", step(), until=in_round(6), no_progress={"window": 2}, max=9)
    result = run(job, cwd=tmp_path)
    assert result.outcome.status == "pass"
    assert [it["level"] for it in of(result, "log")] == ["warn"]


def test_a_changed_workspace_is_progress_r169(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    def body(ctx: Any) -> None:
        if ctx.iteration <= 3:
            (tmp_path / f"{ctx.iteration}.txt").write_text("new", encoding="utf-8")
        # Our own records are no work.
        home = tmp_path / ".obversa"
        home.mkdir(exist_ok=True)
        (home / "record.jsonl").write_text(str(ctx.iteration), encoding="utf-8")

    job = loop("l", fn_job("b", body), until=in_round(99), no_progress=2)
    assert rounds(run(job, cwd=tmp_path)) == 5


def test_loops_and_graphs_nest_in_each_other_r170_r171() -> None:
    done: list[tuple[str, ...]] = []

    def work(ctx: Any) -> str:
        done.append((*ctx.path, str(ctx.iteration)))
        return "done"

    inner = loop("l", fn_job("w", work), until=in_round(2))
    job = dag(
        "g",
        {
            "a": inner,
            "b": {
                "job": loop(
                    "l",
                    pipeline(
                        "p",
                        [
                            {"name": "x", "job": loop("l", fn_job("w", work))},
                        ],
                    ),
                    until=in_round(2),
                ),
                "needs": "a",
            },
        },
    )
    assert run(job).outcome.status == "pass"
    deep = ("g", "b", "l", "p", "x", "l")
    assert done == [
        ("g", "a", "l", "1"),
        ("g", "a", "l", "2"),
        (*deep, "1"),
        (*deep, "1"),
    ]


def test_a_graph_in_a_loop_starts_fresh_in_every_round_r173() -> None:
    attempts: list[tuple[int, int]] = []

    def build(ctx: Any) -> None:
        attempts.append((ctx.iteration, ctx.graph.attempt))

    def check(ctx: Any) -> Outcome | None:
        return kickback("build", "again") if ctx.graph.attempt == 1 else None

    body = pipeline(
        "p",
        [
            {"name": "build", "job": fn_job("build", build)},
            {"name": "check", "job": fn_job("check", check), "accepts_kickback_to": ["build"]},
        ],
        max_kickbacks=1,
    )
    assert run(loop("l", body, until=in_round(2))).outcome.status == "pass"
    assert attempts == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_review_may_be_a_graph_of_the_same_name_as_the_body() -> None:
    seen: list[tuple[str, int]] = []

    def note(name: str) -> Any:
        return fn_job(name, lambda ctx: seen.append((name, ctx.iteration)))

    body = dag("g", {"a": note("body")})
    review = dag("g", {"a": fn_job("r", rejects(1)), "b": note("review")})
    assert run(loop("l", body, review=review)).outcome.status == "pass"
    assert seen == [("body", 1), ("review", 1), ("body", 2), ("review", 2)]


def test_the_findings_of_a_rejected_round_reach_every_first_step_of_a_graph_r8() -> None:
    seen: list[tuple[str, Any]] = []

    def note(name: str) -> Any:
        def body(ctx: Any) -> None:
            seen.append((name, ctx.last_review and ctx.last_review.summary))

        return fn_job(name, body)

    stages = [{"name": "a", "job": note("a")}, {"name": "b", "job": note("b")}]
    run(loop("l", pipeline("p", stages), review=fn_job("r", rejects(1))))
    told = "not yet in round 1"
    assert seen == [("a", None), ("b", None), ("a", told), ("b", told)]


def test_every_round_has_an_idempotency_key_of_its_own() -> None:
    keys: list[str] = []

    def body(ctx: Any) -> None:
        keys.append(ctx.idempotency_key)

    def review(ctx: Any) -> Any:
        body(ctx)
        return rejects(1)(ctx)

    run(loop("l", fn_job("b", body), review=fn_job("r", review)))
    run(loop("l", dag("g", {"a": fn_job("b", body)}), until=in_round(2)))
    assert len(keys) == len(set(keys)) == 6


def test_five_hundred_rounds_end() -> None:
    result = run(loop("l", step(), until=in_round(500)))
    assert rounds(result) == 500
    assert result.outcome.status == "pass"
