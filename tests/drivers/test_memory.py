from __future__ import annotations

import threading
from typing import Any

import pytest

from runs.drivers.memory import arun, run
from runs.drivers.signal import Signal
from runs.kernel.errors import LoopError
from runs.kernel.jsonable import JsonValueError
from runs.kernel.outcomes import Outcome, kickback
from runs.shapes.dag import Node, dag, parallel, pipeline, sequence
from runs.shapes.steps import fn_job


def nothing(_ctx: Any) -> None: ...


def test_steps_run_in_order_and_read_what_they_need() -> None:
    order: list[str] = []

    def note(name: str) -> Any:
        def work(ctx: Any) -> str:
            order.append(name)
            return f"{name} after {sorted(ctx.needs)}"

        return fn_job(name, work)

    nodes = {
        "c": Node(job=note("c"), needs=["a", "b"]),
        "a": note("a"),
        "b": Node(job=note("b"), needs="a"),
    }
    result = run(dag("g", nodes))

    assert order == ["a", "b", "c"]
    assert result.outcome.to_json()["data"] == {
        "c": {"status": "pass", "summary": "c after ['a', 'b']"},
        "a": {"status": "pass", "summary": "a after []"},
        "b": {"status": "pass", "summary": "b after ['a']"},
    }


def test_needs_cannot_be_changed() -> None:
    def changes(ctx: Any) -> None:
        ctx.needs["a"] = None

    result = run(dag("g", {"a": nothing, "b": Node(job=fn_job("b", changes), needs="a")}))

    assert result.outcome.status == "fail"


def test_a_send_back_brings_the_review_once() -> None:
    seen: list[tuple[int, str | None]] = []

    def build(ctx: Any) -> None:
        seen.append((ctx.graph.attempt, ctx.last_review and ctx.last_review.summary))

    def check(ctx: Any) -> Any:
        return kickback("a", "do better") if ctx.graph.attempt == 1 else None

    flow = dag(
        "g",
        {
            "a": fn_job("a", build),
            "b": Node(job=nothing, needs="a"),
            "c": Node(job=fn_job("c", check), needs="b", accepts_kickback_to=["a"]),
        },
        max_kickbacks=2,
    )

    assert run(flow).outcome.status == "pass"
    assert seen == [(1, None), (2, "c sent this back: do better")]


def test_a_review_of_a_graph_is_read_by_the_first_run_of_each_of_its_steps() -> None:
    seen: list[Any] = []

    def inner(ctx: Any) -> None:
        seen.append((ctx.graph.node, ctx.last_review and ctx.last_review.revision.reason))

    def check(ctx: Any) -> Any:
        return kickback("work", "again") if ctx.graph.attempt == 1 else None

    flow = pipeline(
        "p",
        [
            {"name": "work", "job": sequence("s", fn_job("x", inner), fn_job("y", inner))},
            {"name": "check", "job": fn_job("c", check), "accepts_kickback_to": ["work"]},
        ],
        max_kickbacks=1,
    )
    run(flow)

    assert seen == [
        ("step-0", None),
        ("step-1", None),
        ("step-0", "again"),
        ("step-1", "again"),
    ]


def test_never_more_than_four_run_at_once_and_four_do() -> None:
    together = threading.Barrier(4)
    lock = threading.Lock()
    working = most = 0

    def work(_ctx: Any) -> None:
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        together.wait(5)
        with lock:
            working -= 1

    assert run(parallel("p", [fn_job(f"s{n}", work) for n in range(8)])).outcome.passed
    assert most == 4


def test_many_steps_really_run_side_by_side() -> None:
    together = threading.Barrier(60)
    jobs = [fn_job(f"s{n}", lambda _ctx: str(together.wait(20))) for n in range(60)]

    assert run(parallel("p", jobs, 60)).outcome.status == "pass"


def test_state_is_one_mapping_for_the_whole_run() -> None:
    shared: dict[str, Any] = {"n": 1}

    def add(ctx: Any) -> None:
        ctx.state["n"] += 1

    run(sequence("s", fn_job("a", add), dag("g", {"x": fn_job("b", add)})), state=shared)

    assert shared == {"n": 3}


def test_params_are_one_frozen_copy() -> None:
    given = {"list": [1]}
    seen: list[Any] = []

    def read(ctx: Any) -> None:
        given["list"].append(2)
        seen.append(ctx.params)
        with pytest.raises(TypeError):
            ctx.params["x"] = 1

    result = run(sequence("s", fn_job("a", read), fn_job("b", read)), params=given)

    assert result.outcome.status == "pass"
    assert seen[0] is seen[1]
    assert seen[0] == {"list": [1]}


def test_without_params_a_job_sees_an_empty_object() -> None:
    seen: list[Any] = []
    run(fn_job("a", lambda ctx: seen.append(ctx.params)))

    assert seen == [{}]


@pytest.mark.parametrize(
    ("params", "path"), [([], ""), ("x", ""), (3, ""), (True, ""), ({"a": [{1}]}, "/a/0")]
)
def test_params_that_are_no_json_object_are_refused_by_path(params: Any, path: str) -> None:
    ran: list[Any] = []
    with pytest.raises(JsonValueError) as caught:
        run(fn_job("a", ran.append), params=params)

    assert caught.value.code == "INVALID_JSON_VALUE"
    assert caught.value.path == path
    assert ran == []


@pytest.mark.parametrize("run_id", ["", "A", "-x", "a b", "x\n", "é"])
def test_a_run_id_of_another_form_is_refused(run_id: str) -> None:
    with pytest.raises(LoopError) as caught:
        run(nothing, run_id=run_id)

    assert caught.value.code == "CONFIG"


def test_options_that_cannot_be_are_refused_before_anything_runs() -> None:
    ran: list[Any] = []
    job = fn_job("a", ran.append)
    with pytest.raises(ValueError, match="on_callback"):
        run(job, on_callback="later")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(LoopError, match="'gpt'"):
        run(job, engine="gpt")
    with pytest.raises(TypeError):
        run(job, unknown=1)  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(TypeError):
        run(3)

    assert ran == []


def test_a_hand_written_job_that_raises_at_the_root_is_unknown() -> None:
    def job(_ctx: Any) -> None:
        raise RuntimeError("oh")

    root, inside = run(job).outcome, run(dag("g", {"a": job})).outcome.to_json()

    assert root.error is not None
    assert (root.status, root.error["code"]) == ("fail", "UNKNOWN")
    assert inside["data"]["a"]["error"]["code"] == "BODY"  # type: ignore[index, call-overload]  # mappings all the way


def test_a_check_of_the_author_chooses_in_a_worker() -> None:
    def is_first(ctx: Any, _last: Any) -> bool:
        return bool(ctx.graph.node == "a")

    flow = dag("g", {"a": Node(job=nothing, when=is_first), "b": Node(job=nothing, when=is_first)})
    result = run(flow)

    phases = [
        (event.fields["node"], event.fields["phase"])
        for event in result.events
        if event.kind == "dag:node"
    ]
    assert sorted(phases) == [("a", "done"), ("a", "start"), ("b", "skip")]


def test_a_check_that_raises_is_its_nodes_failure() -> None:
    def broken(_ctx: Any, _last: Any) -> bool:
        raise RuntimeError("no network")

    result = run(dag("g", {"a": Node(job=nothing, when=broken)}))
    error = result.outcome.to_json()["data"]["a"]["error"]  # type: ignore[index, call-overload]  # mappings all the way

    assert (error["code"], error["phase"], error["message"]) == ("BODY", "body", "no network")  # type: ignore[index, call-overload]  # a mapping
    assert [event.fields["code"] for event in result.events if event.kind == "error"] == ["BODY"]


def test_a_cancel_lets_what_runs_end_and_starts_nothing() -> None:
    signal = Signal()
    ran: list[str] = []

    def stops(ctx: Any) -> str:
        signal.set("enough")
        assert ctx.signal.is_set()
        ran.append("a")
        return "finished anyway"

    flow = sequence("s", fn_job("a", stops), fn_job("b", lambda _ctx: ran.append("b")))
    result = run(flow, signal=signal)

    assert ran == ["a"]
    assert result.outcome.status == "aborted"
    data = result.outcome.to_json()["data"]
    assert data["step-0"]["summary"] == "finished anyway"  # type: ignore[index, call-overload]  # a mapping
    (cancel,) = (event for event in result.events if event.kind == "run:cancel-requested")
    assert cancel.fields["reason"] == "enough"


def test_a_signal_that_is_set_before_the_start_runs_nothing() -> None:
    signal = threading.Event()
    signal.set()
    ran: list[Any] = []
    result = run(dag("g", {"a": fn_job("a", ran.append)}), signal=signal)

    assert result.outcome.status == "aborted"
    assert ran == []


def test_a_step_that_raises_because_of_the_cancel_is_aborted() -> None:
    signal = Signal()

    def stops(_ctx: Any) -> None:
        signal.set()
        raise RuntimeError("interrupted")

    outcome = run(fn_job("a", stops), signal=signal).outcome

    assert outcome.status == "aborted"
    assert outcome.error is not None
    assert outcome.error["code"] == "ABORTED"


async def test_arun_leaves_the_loop_free_and_runs_async_steps() -> None:
    async def step(_ctx: Any) -> str:
        return "async"

    result = await arun(sequence("s", fn_job("a", step), nothing))

    assert result.outcome.status == "pass"


def test_an_attached_file_is_in_the_result_by_its_digest(tmp_path: Any) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# hi")
    made: list[dict[str, Any]] = []

    def attach(ctx: Any) -> None:
        made.append(ctx.attach("notes", path, "text/markdown"))
        made.append(ctx.attach("again", "# hi"))
        made.append(ctx.attach("bytes", b"\0"))

    result = run(fn_job("a", attach))

    assert made[0]["byteLength"] == 4
    assert made[0]["mediaType"] == "text/markdown"
    assert made[0]["digest"] == made[1]["digest"]
    assert result.artifacts == {made[0]["digest"]: b"# hi", made[2]["digest"]: b"\0"}
    stored = [event.fields for event in result.events if event.kind == "artifact:stored"]
    assert stored == made


def test_a_pause_a_body_returns_leaves_the_run_in_either_mode() -> None:
    for mode in ("exit", "wait"):
        job = fn_job("a", lambda _ctx: Outcome(status="paused", summary="limit"))
        result = run(dag("g", {"a": job}), on_callback=mode)
        assert (result.outcome.status, result.outcome.summary) == ("paused", "limit")
