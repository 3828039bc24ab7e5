from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.drivers.context import GraphPosition
from runs.drivers.memory import run
from runs.kernel.errors import LoopError
from runs.kernel.outcomes import Outcome
from runs.shapes.dag import Node, dag, sequence
from runs.shapes.steps import fn_job


def nothing(_ctx: Any) -> None: ...


def seen_by(job_of: Any, **options: Any) -> Any:
    """The context that the step built by `job_of` was given."""
    held: list[Any] = []

    def keep(ctx: Any) -> None:
        held.append(ctx)

    assert run(job_of(fn_job("keep", keep)), **options).outcome.status == "pass"
    return held[0]


def test_a_step_at_the_root_has_no_graph_and_no_needs() -> None:
    ctx = seen_by(lambda job: job)

    assert (ctx.path, ctx.depth, ctx.iteration) == ((), 0, 0)
    assert ctx.graph is None
    assert ctx.needs is None
    assert ctx.last_review is None
    assert ctx.on_callback == "exit"


def test_a_node_knows_its_place() -> None:
    def job_of(job: Any) -> Any:
        return dag(
            "g",
            {
                "a": nothing,
                "b": Node(job=job, needs="a", desc="makes", gate="small", timeout_ms=9),
                "c": Node(job=nothing, needs="b"),
                "d": Node(job=nothing, needs="c"),
            },
        )

    ctx = seen_by(job_of)
    assert ctx.graph == GraphPosition(
        dag="g",
        node="b",
        attempt=1,
        path=("g", "b"),
        needs=("a",),
        dependents=("c",),
        desc="makes",
        gate="small",
    )
    assert ctx.needs == {"a": Outcome(status="pass", summary="nothing")}
    assert (ctx.path, ctx.depth, ctx.timeout_ms) == (("g", "b"), 1, 9)


def test_needs_are_not_inherited_but_time_limits_are() -> None:
    def job_of(job: Any) -> Any:
        inner = dag("in", {"x": job})
        return dag("g", {"a": nothing, "b": Node(job=inner, needs="a", timeout_ms=7)})

    ctx = seen_by(job_of)
    assert ctx.needs == {}
    assert ctx.timeout_ms == 7
    assert (ctx.path, ctx.depth) == (("g", "b", "in", "x"), 2)


def test_the_workspace_is_the_given_directory(tmp_path: Path) -> None:
    assert seen_by(lambda job: job, cwd=tmp_path).workspace.dir == tmp_path
    assert seen_by(lambda job: job).workspace.dir == Path.cwd()


def test_an_engine_is_resolved_by_name_instance_or_default() -> None:
    engine = object()
    ctx = seen_by(lambda job: job, engine="one", engines={"one": engine})

    assert ctx.resolve_engine() is engine
    assert ctx.resolve_engine("one") is engine
    assert ctx.resolve_engine(engine) is engine
    with pytest.raises(LoopError, match="'two'") as caught:
        ctx.resolve_engine("two")
    assert caught.value.code == "CONFIG"
    with pytest.raises(LoopError):
        seen_by(lambda job: job).resolve_engine()


def test_an_idempotency_key_belongs_to_one_attempt_of_one_run() -> None:
    keys: list[str] = []

    def keep(ctx: Any) -> None:
        keys.append(ctx.idempotency_key)

    flow = sequence("s", fn_job("a", keep), fn_job("b", keep))
    for run_id in ("one", "one", "two", None, None):
        run(flow, run_id=run_id)

    assert keys[0] == "one/s/step-0/1.1"
    assert keys[:2] == keys[2:4]
    assert len(set(keys)) == 8


@pytest.mark.parametrize("kind", ["dag:node", "job:end", "run:end", "callback-submitted"])
def test_a_step_cannot_record_what_moves_the_run(kind: str) -> None:
    def forge(ctx: Any) -> None:
        ctx.emit(kind, outcome={"status": "pass"})

    outcome = run(fn_job("a", forge)).outcome
    assert outcome.error is not None
    assert outcome.error["code"] == "VALIDATION"


def test_an_event_that_is_no_json_is_refused() -> None:
    outcome = run(fn_job("a", lambda ctx: ctx.emit("proof", data={1}))).outcome

    assert outcome.status == "fail"


def test_what_is_emitted_is_frozen_at_that_moment() -> None:
    data = [1]

    def work(ctx: Any) -> None:
        ctx.emit("proof", data=data)
        data.append(2)

    result = run(fn_job("a", work))
    (proof,) = (event for event in result.events if event.kind == "proof")
    assert proof.fields["data"] == [1]


def test_a_graph_is_not_called_from_inside_a_step() -> None:
    inner = dag("in", {"x": nothing})
    outcome = run(fn_job("a", inner)).outcome

    assert outcome.error is not None
    assert outcome.error["code"] == "CONFIG"
    assert "'in'" in str(outcome.summary)


def test_a_step_may_call_another_in_its_own_thread() -> None:
    inner = fn_job("in", lambda ctx: f"at {ctx.path}")

    assert run(fn_job("a", inner)).outcome.summary == "at ()"
