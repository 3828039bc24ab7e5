from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.kernel.conditions import passed
from runs.kernel.errors import DeclarationError
from runs.kernel.outcomes import kickback
from runs.shapes.dag import Node, dag
from runs.shapes.env import with_env
from runs.shapes.loop import loop
from runs.shapes.plan import job_meta
from runs.shapes.steps import command_job, command_succeeds, fn_job

PYTHON = sys.executable


def shows(name: str, **more: Any) -> Any:
    code = f"import os; print('{name} is', os.environ.get('{name}'))"
    return command_job("show", [PYTHON, "-c", code], **more)


def summary(job: Any) -> str:
    result = run(job)
    assert result.outcome.status == "pass", result.outcome
    return str(result.outcome.summary)


def test_r74_a_command_beneath_sees_the_variables() -> None:
    assert "MODE is dev" in summary(with_env(shows("MODE"), {"MODE": "dev"}))


def test_d24_both_orders_are_the_same() -> None:
    assert "MODE is dev" in summary(with_env({"MODE": "dev"}, shows("MODE")))


def test_r74_inner_wins_over_outer_and_a_commands_own_over_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODE", "proc")
    outer = {"MODE": "out", "OTHER": "o"}

    assert "MODE is proc" in summary(shows("MODE"))
    assert "MODE is in" in summary(with_env(with_env(shows("MODE"), {"MODE": "in"}), outer))
    assert "MODE is out" in summary(with_env(with_env(shows("MODE"), {"X": "x"}), outer))
    assert "MODE is own" in summary(with_env(shows("MODE", env={"MODE": "own"}), outer))
    assert os.environ["MODE"] == "proc"
    assert "OTHER" not in os.environ


def test_r74_the_running_environment_comes_before_the_overlays() -> None:
    seen: list[dict[str, str]] = []

    def look(ctx: Any) -> None:
        ctx.environment = SimpleNamespace(env={"BASE_URL": "http://x", "MODE": "up"})
        seen.append(ctx.variables({"CALL": "1"}))

    run(with_env(fn_job("look", look), {"MODE": "over"}))
    assert seen == [{"BASE_URL": "http://x", "MODE": "over", "CALL": "1"}]


def test_r74_it_never_takes_a_variable_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "here")

    assert "KEPT is here" in summary(with_env(shows("KEPT"), {}))


def test_r74_everything_beneath_a_graph_sees_them() -> None:
    when = command_succeeds(
        PYTHON, ["-c", "import os; raise SystemExit(os.environ['MODE'] != 'dev')"]
    )
    inner = dag(
        "in", {"a": shows("MODE"), "b": Node(job=shows("MODE"), needs="a", when=passed("a"))}
    )
    flow = dag("out", {"x": Node(job=inner, when=when)})
    result = run(with_env(flow, {"MODE": "dev"}))

    assert result.outcome.status == "pass"
    shown = [e for e in result.events if e.kind == "job:end"]
    assert len(shown) == 2
    assert all("MODE is dev" in e.fields["outcome"]["summary"] for e in shown)
    assert not [event for event in run(flow).events if event.kind == "job:end"]


def test_r74_a_loop_and_all_its_parts_see_them() -> None:
    seen: list[Any] = []

    def look(ctx: Any, _last: Any = None) -> bool:
        seen.append(ctx.env_overlay.get("MODE"))
        return True

    job = loop(
        "l",
        lambda ctx: look(ctx) and None,
        start=look,
        until=look,
        review=fn_job("review", lambda ctx: look(ctx) and None),
        max=1,
        no_progress={"signal": look, "workspace": False},
        on_iteration=look,
        on_complete=look,
    )

    assert run(with_env(job, {"MODE": "dev"})).outcome.passed
    assert seen == ["dev"] * 7


def test_r75_the_wrapper_adds_no_event_and_no_path() -> None:
    def told(result: RunResult) -> list[tuple[str, tuple[str, ...]]]:
        return [(str(event.kind), event.path) for event in result.events]

    flow = dag("g", {"a": fn_job("a", lambda ctx: ctx.log("x"))})
    wrapped = with_env(flow, {"MODE": "dev"})

    assert told(run(wrapped)) == told(run(flow))
    assert job_meta(wrapped) == job_meta(flow)
    assert wrapped.shape is flow.shape


def test_r75_the_review_reaches_the_wrapped_job() -> None:
    reviews: list[Any] = []

    def build(ctx: Any) -> None:
        reviews.append(ctx.last_review and ctx.last_review.revision.reason)

    def review(ctx: Any) -> Any:
        return kickback("build", "again") if ctx.graph.attempt == 1 else None

    flow = dag(
        "g",
        {
            "build": with_env(fn_job("build", build), {"A": "b"}),
            "review": Node(job=review, needs="build", accepts_kickback_to=["build"]),
        },
        max_kickbacks=1,
    )
    assert run(flow).outcome.passed
    assert reviews == [None, "again"]


@pytest.mark.parametrize(
    "overlay", [None, [("A", "b")], {"": "x"}, {"A=B": "x"}, {3: "x"}, {"A": 3}, {"A": None}]
)
def test_r76_an_overlay_that_cannot_be_is_refused_when_declared(overlay: Any) -> None:
    with pytest.raises(DeclarationError) as refused:
        with_env(fn_job("a", print), overlay)

    assert refused.value.code == "CONFIG"
