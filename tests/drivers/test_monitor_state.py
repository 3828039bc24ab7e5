"""What the run's own page knows of a run (runs.md R291, R293)."""

from __future__ import annotations

from typing import Any

from runs.drivers.callbacks import create_callback_client
from runs.drivers.memory import run
from runs.drivers.monitor.view import outermost
from runs.kernel.outcomes import kickback
from runs.shapes.dag import Node, dag
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job
from tests.drivers.test_monitor import Page, nothing


def test_skips_send_backs_and_rounds_are_shown() -> None:
    def check(ctx: Any) -> Any:
        return kickback("a", "once more") if ctx.graph.attempt == 1 else None

    inner = dag(
        "g",
        {
            "a": nothing,
            "b": Node(job=fn_job("b", check), needs="a", accepts_kickback_to=["a"]),
            "c": Node(job=nothing, needs="b", when=lambda _ctx, _last: False, optional=True),
        },
        max_kickbacks=1,
    )
    result = run(loop("l", inner, max=1), monitor=True)
    state = Page(create_callback_client(), result).state()
    result.monitor.close()

    assert state["name"] == "l"
    assert {name: node["runs"] for name, node in state["nodes"].items()} == {
        "a": 2,
        "b": 2,
        "c": 0,
    }
    assert state["nodes"]["c"]["phase"] == "skipped"
    assert state["nodes"]["c"]["optional"] is True
    (back,) = state["kickbacks"]
    assert (back["from"], back["to"], back["accepted"], back["count"]) == ("b", "a", True, 1)


def test_only_the_outermost_graph_is_shown() -> None:
    inner = dag("inner", {"x": nothing})
    assert outermost(dag("outer", {"in": inner}).shape)[0] == ("outer",)
    assert outermost(fn_job("a", nothing).shape) == (None, None)


def test_two_hundred_events_are_kept() -> None:
    def work(ctx: Any) -> None:
        for number in range(300):
            ctx.log(str(number))

    result = run(fn_job("a", work), monitor=True)
    state = Page(create_callback_client(), result).state()
    result.monitor.close()

    assert len(state["events"]) == 200
    assert state["events"][-1]["kind"] == "run:end"
