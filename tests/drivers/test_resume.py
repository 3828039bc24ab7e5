"""`run(resume=True)`: what a second session of a record skips, repeats and asks (section 14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.drivers.callbacks import create_callback_client
from runs.drivers.errors import RecordDamaged
from runs.drivers.jsonl import read_record
from runs.drivers.memory import run
from runs.kernel.conditions import predicate
from runs.kernel.outcomes import Outcome, kickback
from runs.kernel.state import fold
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, pipeline
from runs.shapes.steps import fn_job
from tests.drivers.scripted import Script, respond


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_a_missing_record_is_a_fresh_run(script: Script) -> None:
    result = script.run(script.flow("a"))

    assert result.outcome.status == "pass"
    assert result.events[0].fields["session"] == 1


def test_finished_steps_are_taken_over_and_the_rest_runs(script: Script) -> None:
    script.fails = {"b"}
    assert script.run(script.flow("a", "b", "c")).outcome.status == "fail"
    script.fails = set()
    result = script.run(script.flow("a", "b", "c"))

    assert result.outcome.status == "pass"
    assert script.ran == {"a": 1, "b": 2, "c": 1}
    assert result.events[0].kind == "run:start"
    assert result.events[0].fields["session"] == 2
    assert fold(read_record(script.path).events).ended == result.outcome


def test_a_step_taken_over_is_told_again_with_its_figures(script: Script) -> None:
    first = script.run(script.flow("a"))
    again = script.run(script.flow("a"))
    (done,) = (event for event in first.events if event.fields.get("phase") == "done")
    start, told = (event for event in again.events if event.kind == "dag:node")

    assert script.ran == {"a": 1}
    assert again.outcome == first.outcome
    assert (start.fields["phase"], start.fields["attempt"]) == ("start", 1)
    assert told.fields == {**done.fields, "reused": True}
    assert script.kinds(2) == [
        "run:start",
        "workflow:start",
        "dag:node",
        "dag:node",
        "dag:end",
        "run:end",
    ]


def test_what_a_step_handed_on_is_there_for_those_after_it(script: Script) -> None:
    seen: list[Any] = []

    def reads(ctx: Any) -> Any:
        seen.append(ctx.needs["a"].data)
        return Outcome(status="fail") if len(seen) == 1 else None

    flow = dag("g", {"a": script.step("a"), "b": Node(job=fn_job("b", reads), needs="a")})
    script.run(flow)
    script.run(flow)

    assert seen == [{"name": "a"}, {"name": "a"}]


def test_a_plain_job_runs_again(script: Script) -> None:
    for count in (1, 2, 3):
        script.run(script.step("a"))
        assert script.ran == {"a": count}


def test_a_skipped_step_is_asked_again(script: Script) -> None:
    wanted = {"b": False}

    def flow() -> Any:
        when = predicate(lambda _ctx, _last: wanted["b"], "wanted")
        return dag("g", {"a": script.step("a"), "b": Node(job=script.step("b"), when=when)})

    script.run(flow())
    wanted["b"] = True
    script.run(flow())

    assert script.ran == {"a": 1, "b": 1}


def test_the_run_keeps_its_name_for_idempotency_keys(script: Script) -> None:
    keys: list[str] = []

    def fails(ctx: Any) -> Outcome:
        keys.append(ctx.idempotency_key)
        return Outcome(status="fail")

    for _ in range(2):
        script.run(dag("g", {"b": fn_job("b", fails)}))

    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_the_run_id_and_the_parameters_go_on(script: Script) -> None:
    seen: list[Any] = []
    job = fn_job("a", lambda ctx: seen.append(dict(ctx.params)))
    script.run(job, run_id="named", params={"n": 1})
    result = script.run(job)
    script.run(job, params={"n": 3})
    script.run(job)

    assert result.run_id == "named"
    assert seen == [{"n": 1}, {"n": 1}, {"n": 3}, {"n": 3}]


def test_waiting_for_an_answer_asks_one_question_however_often_it_is_resumed(
    script: Script,
) -> None:
    client = create_callback_client()
    for _ in range(5):
        result = script.run(script.flow("a", "ok", "b"), callbacks=client)
        assert result.outcome.status == "paused"
        assert result.outcome.summary == "waiting for a person: Ship it?"

    assert script.ran == {"a": 1}
    assert [event["kind"] for event in client.history()] == ["callback-requested"]
    kinds = [event.kind for event in read_record(script.path).events]
    assert kinds.count("callback-requested") == 1
    assert kinds.count("run:end") == 5


def test_the_answer_carries_the_run_on_and_is_recorded(script: Script) -> None:
    client = create_callback_client()
    script.run(script.flow("a", "ok", "b"), callbacks=client)
    respond(client)
    result = script.run(script.flow("a", "ok", "b"), callbacks=client)

    assert result.outcome.status == "pass"
    assert script.ran == {"a": 1, "b": 1}
    assert script.kinds(2)[:4] == [
        "run:start",
        "callback-claimed",
        "callback-submitted",
        "workflow:start",
    ]
    # What is recorded is not recorded twice.
    assert script.run(script.flow("a", "ok", "b"), callbacks=client).outcome.status == "pass"
    kinds = [event.kind for event in read_record(script.path).events]
    assert kinds.count("callback-submitted") == 1
    assert script.ran == {"a": 1, "b": 1}


def test_a_client_that_never_heard_of_the_question_is_asked(script: Script) -> None:
    script.run(script.flow("a", "ok"))
    client = create_callback_client()
    result = script.run(script.flow("a", "ok"), callbacks=client)

    assert result.outcome.status == "paused"
    assert len(client.list_pending()) == 1
    respond(client)
    assert script.run(script.flow("a", "ok"), callbacks=client).outcome.status == "pass"
    assert script.ran == {"a": 1}


def test_a_question_that_is_the_whole_job_waits_and_is_answered(script: Script) -> None:
    client = create_callback_client()
    job = approval("ok", "Ship it?")
    script.run(job, callbacks=client)
    script.run(job, callbacks=client)
    respond(client)

    assert script.run(job, callbacks=client).outcome.status == "pass"
    assert script.run(approval("ok", "Ship it?")).outcome.status == "paused"


def test_a_no_sends_back_within_the_same_limit_over_all_sessions(script: Script) -> None:
    client = create_callback_client()

    def flow() -> Any:
        return pipeline(
            "g",
            [
                {"name": "build", "job": script.step("build")},
                {
                    "name": "ok",
                    "job": approval("ok", "Ship it?", target="build", per_attempt=True),
                    "accepts_kickback_to": ["build"],
                },
            ],
            max_kickbacks=1,
        )

    script.run(flow(), callbacks=client)
    respond(client, {"approved": False, "note": "again"})
    assert script.run(flow(), callbacks=client).outcome.status == "paused"
    assert script.ran == {"build": 2}
    respond(client, {"approved": False, "note": "and again"})
    assert script.run(flow(), callbacks=client).outcome.status == "fail"
    assert script.ran == {"build": 2}


def test_send_backs_spent_stay_spent_after_the_run_has_failed(script: Script) -> None:
    def flow() -> Any:
        return dag(
            "g",
            {
                "a": script.step("a"),
                "b": Node(
                    job=fn_job("b", lambda _ctx: kickback("a", "worse")),
                    needs="a",
                    accepts_kickback_to=["a"],
                ),
            },
            max_kickbacks=1,
        )

    assert script.run(flow()).outcome.status == "fail"
    assert script.ran == {"a": 2}
    assert script.run(flow()).outcome.status == "fail"
    assert script.ran == {"a": 2}


def test_an_inner_graph_goes_on_where_it_was(script: Script) -> None:
    def flow() -> Any:
        inner = dag("inner", {"x": script.step("x"), "y": Node(job=script.step("y"), needs="x")})
        return dag("g", {"in": inner, "last": Node(job=script.step("last"), needs="in")})

    script.fails = {"y"}
    script.run(flow())
    script.fails = set()

    assert script.run(flow()).outcome.status == "pass"
    assert script.ran == {"x": 1, "y": 2, "last": 1}


def test_a_question_of_a_shape_that_is_gone_waits_for_nobody(script: Script) -> None:
    client = create_callback_client()
    script.run(script.flow("a", "ok"), callbacks=client)
    result = script.run(script.flow("a", "b"), callbacks=client)

    assert result.outcome.status == "pass"
    assert script.ran == {"a": 2, "b": 1}
    assert client.list_pending() == []
    assert [event["kind"] for event in client.history()] == [
        "callback-requested",
        "callback-superseded",
    ]


def test_a_question_that_the_new_shape_asks_too_is_asked_by_it(script: Script) -> None:
    client = create_callback_client()
    script.run(script.flow("ok"), callbacks=client)
    (before,) = client.list_pending()
    script.run(script.flow("ok", c=Node(job=script.step("c"))), callbacks=client)

    assert client.list_pending() == [before]
    respond(client)
    job = script.flow("ok", c=Node(job=script.step("c"), optional=True))
    # Answered, it is not put again whatever becomes of the shape (design D7).
    assert script.run(job, callbacks=client).outcome.status == "pass"


def test_a_record_that_does_not_add_up_is_refused_and_left_alone(script: Script) -> None:
    script.path.write_text('{"kind":"dag:end","ts":1,"path":["g"],"outcome":{},"session":1}\n')
    before = script.path.read_bytes()

    with pytest.raises(RecordDamaged, match="does not add up"):
        script.run(script.flow("a"))
    assert script.path.read_bytes() == before
    assert script.ran == {}


def test_an_auto_record_can_be_taken_up_by_its_path(script: Script, tmp_path: Path) -> None:
    script.fails = {"b"}
    first = run(script.flow("a", "b"), record_to="auto", cwd=tmp_path)
    script.fails = set()
    again = run(script.flow("a", "b"), record_to=first.record_path, resume=True, cwd=tmp_path)

    assert again.run_id == first.run_id
    assert again.outcome.status == "pass"
    assert script.ran == {"a": 1, "b": 2}
