from __future__ import annotations

import threading
from typing import Any

from runs.drivers.memory import RunResult, run
from runs.kernel.jsonable import canonical_json
from runs.kernel.outcomes import Outcome
from runs.kernel.state import fold
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, parallel, sequence
from runs.shapes.steps import fn_job


def nothing(_ctx: Any) -> None: ...


FLOW = dag("g", {"a": nothing, "b": Node(job=nothing, needs="a", desc="d")})


def shown(result: RunResult) -> list[str]:
    lines = []
    for event in result.events:
        more = [event.fields[key] for key in ("node", "phase") if key in event.fields]
        lines.append(" ".join([event.kind, "/".join(event.path), *more]).strip())
    return lines


def test_the_order_of_a_runs_events() -> None:
    assert shown(run(FLOW)) == [
        "run:start",
        "workflow:start g",
        "dag:start g",
        "dag:node g a start",
        "job:start g/a",
        "job:end g/a",
        "dag:node g a done",
        "dag:node g b start",
        "job:start g/b",
        "job:end g/b",
        "dag:node g b done",
        "dag:end g",
        "run:end",
    ]


def test_one_start_first_and_one_end_last_whatever_happens() -> None:
    def raises(_ctx: Any) -> None:
        raise RuntimeError

    for job in (
        FLOW,
        nothing,
        raises,
        dag("g", {}),
        approval("ok", "Ship?"),
        parallel("p", [raises]),
    ):
        kinds = [event.kind for event in run(job).events]
        assert (kinds[0], kinds.count("run:start")) == ("run:start", 1)
        assert (kinds[-1], kinds.count("run:end")) == ("run:end", 1)


def test_the_end_says_what_the_result_says() -> None:
    result = run(FLOW, run_id="flow-1")
    start, end = result.events[0], result.events[-1]

    assert start.fields == {"session": 1, "runId": "flow-1"}
    assert end.fields["outcome"] == result.outcome.to_json()
    assert end.fields["usage"] == result.usage
    assert set(result.usage) == {
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
        "unmeasuredCalls",
    }
    assert result.run_id == "flow-1"
    assert run(FLOW).run_id is None


def test_the_anchor_names_the_graph_by_its_identity() -> None:
    first, again = (run(FLOW, run_id="x").events[1].fields for _ in range(2))

    assert len(first["identity"]) == 64
    assert first == again
    assert run(dag("g", {"a": nothing})).events[1].fields["identity"] != first["identity"]


def test_listeners_hear_every_event_in_order_on_the_wire_form() -> None:
    heard: list[dict[str, Any]] = []
    result = run(FLOW, on_event=heard.append)

    assert heard == [event.to_wire() for event in result.events]
    assert [event.seq for event in result.events] == list(range(1, len(heard) + 1))
    for wire in heard:
        canonical_json(wire)
        assert {"kind", "ts", "path"} <= set(wire)


def test_a_listener_that_raises_or_writes_harms_nothing() -> None:
    def meddles(wire: dict[str, Any]) -> None:
        wire.get("outcome", {})["status"] = "fail"
        wire.clear()
        raise RuntimeError("listener")

    result = run(FLOW, on_event=meddles)

    assert result.outcome.status == "pass"
    assert shown(result) == shown(run(FLOW))


def test_the_record_alone_gives_the_runs_end() -> None:
    for job in (FLOW, approval("ok", "Ship?"), sequence("s", FLOW, approval("ok", "Ship?"))):
        result = run(job, params={"n": 1})
        assert fold(result.events).ended == result.outcome
        assert fold(result.events).params == {"n": 1}


def test_a_steps_own_events_stand_at_its_path() -> None:
    def work(ctx: Any) -> None:
        ctx.emit("proof", name="n", artifact={"kind": "json", "data": [1]})
        ctx.log("half way")

    result = run(dag("g", {"a": fn_job("a", work)}))
    proof, log = (event for event in result.events if event.kind in ("proof", "log"))

    assert proof.path == ("g", "a")
    assert proof.fields["artifact"] == {"kind": "json", "data": [1]}
    assert (log.path, log.fields) == ((), {"level": "info", "message": "half way"})


def test_nothing_is_recorded_after_the_end() -> None:
    held: list[Any] = []
    result = run(fn_job("a", held.append))
    held[0].log("too late")
    held[0].emit("proof", name="n")

    assert result.events[-1].kind == "run:end"
    assert fold(result.events).ended == Outcome(status="pass", summary="a")


def test_events_of_parallel_steps_have_one_order() -> None:
    together = threading.Barrier(4)

    def work(ctx: Any) -> None:
        together.wait(5)
        for _ in range(20):
            ctx.log("x")

    heard: list[dict[str, Any]] = []
    result = run(parallel("p", [fn_job(f"s{n}", work) for n in range(4)]), on_event=heard.append)

    assert heard == [event.to_wire() for event in result.events]
    assert sum(event.kind == "log" for event in result.events) == 80
