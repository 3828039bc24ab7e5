"""What a step may hand over to the record, and what fails it."""

from __future__ import annotations

from typing import Any

import pytest

from runs.drivers.context import Context
from runs.models import Artifact, Attempt, Run
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from runs.turns import results
from tests import flows

pytestmark = pytest.mark.django_db


def one(fn: Any, **options: Any) -> Any:
    """A workflow of the one step `fn`."""
    return pipeline("one", [{"name": "a", "job": fn_job("a", fn, **options)}])


def the_step(run: Run) -> Any:
    return flows.steps(run)["a"]


def too_large(ctx: Context) -> Any:
    return {"status": "pass", "data": "x" * results.MAX_BYTES}


def too_deep(ctx: Context) -> Any:
    value: Any = 1
    for _ in range(250):
        value = [value]
    return {"status": "pass", "data": value}


def no_json(ctx: Context) -> Any:
    return {"status": "pass", "data": {1, 2}}


def holds_itself(ctx: Context) -> Any:
    value: list[Any] = []
    value.append(value)
    return {"status": "pass", "data": value}


def large_state(ctx: Context) -> None:
    ctx.state["x"] = "x" * results.MAX_BYTES


def odd_state(ctx: Context) -> None:
    ctx.state["x"] = object()


def odd_event(ctx: Context) -> None:
    ctx.emit("note", what=object())  # type: ignore[arg-type]  # on purpose


def large_event(ctx: Context) -> None:
    ctx.emit("note", what="x" * results.MAX_BYTES)


def odd_kind(ctx: Context) -> None:
    ctx.emit("x" * 61)


def own_end(ctx: Context) -> None:
    ctx.emit("run:end", outcome={"status": "pass"})


def odd_text(ctx: Context) -> None:
    raise ValueError("half of a pair: \ud800")


def leaves(ctx: Context) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    "body",
    [
        too_large,
        too_deep,
        no_json,
        holds_itself,
        large_state,
        odd_state,
        odd_event,
        large_event,
        odd_kind,
        own_end,
        odd_text,
        leaves,
    ],
)
def test_what_the_record_cannot_take_fails_its_step_alone(body: Any) -> None:
    job = dag(
        "two",
        {"a": fn_job("a", body), "b": fn_job("b", lambda ctx: "fine")},
        stop_on_error=False,
    )

    run = flows.ran(job)

    assert flows.statuses(run) == {"a": "failed", "b": "passed"}
    assert run.status == "failed"
    assert the_step(run).outcome["error"]["code"] in ("VALIDATION", "BODY")
    assert set(Attempt.objects.values_list("status", flat=True)) == {"done"}


def test_a_result_of_exactly_the_limit_is_taken() -> None:
    room = results.MAX_BYTES - len('{"data":"","status":"pass"}')

    run = flows.ran(one(lambda ctx: {"status": "pass", "data": "x" * room}))

    assert run.status == "passed"
    assert len(the_step(run).outcome["data"]) == room


def test_text_that_postgresql_has_no_column_for_is_recorded_all_the_same() -> None:
    def body(ctx: Context) -> str:
        ctx.log("a \0 b")
        ctx.attach("odd \0 name", b"x", "text/\0plain")
        return "ends \0 so" + "!" * 5000

    run = flows.ran(one(body))

    assert run.status == "passed"
    assert the_step(run).summary.startswith("ends \ufffd so!!!")
    assert len(the_step(run).summary) == 2000
    assert the_step(run).outcome["summary"].startswith("ends \0 so!!!")
    assert flows.events(run, "log")[0].fields["message"] == "a \0 b"
    assert Artifact.objects.get(run=run).name == "odd \ufffd name"


def test_a_log_line_without_end_is_cut() -> None:
    run = flows.ran(one(lambda ctx: ctx.log("x" * 10**6)))

    message = flows.events(run, "log")[0].fields["message"]

    assert run.status == "passed"
    assert len(message) < results.MAX_LOG + 20
    assert message.endswith("(cut)")


def test_a_step_that_cannot_begin_fails_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    run = flows.start(one(lambda ctx: "never"))
    monkeypatch.setattr("runs.attempts.starts.deployment.engines_of", broken)

    flows.work(run)

    assert flows.fresh(run).status == "failed"
    assert "could not begin" in the_step(run).summary


def test_a_step_that_looks_for_its_folder_in_vain_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    run = flows.start(one(lambda ctx: str(ctx.workspace.dir)))
    monkeypatch.setattr("runs.attempts.folders.Path.mkdir", full)

    flows.work(run)

    assert flows.fresh(run).status == "failed"
    assert "no space left" in the_step(run).summary
