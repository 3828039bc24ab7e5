"""Calls of tools in a script: it pauses, or is told; a record and a client carry the yes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gates import create_callback_client, direct_router
from runs import fn_job, run
from runs.drivers.callbacks import CallbackClient
from runs.drivers.context import Context
from runs.drivers.result import RunResult
from runs.kernel.conditions import predicate
from runs.kernel.gate import CallbackRequest
from runs.shapes.dag import dag
from tests.acting import CONVERSATION, DENY, FIRST, ONCE, Downstream, calling, publish_post


@pytest.fixture
def downstream() -> Downstream:
    made = Downstream()
    publish_post(made)
    return made


def answered(client: CallbackClient, response: dict[str, Any]) -> bool:
    (asked,) = client.list_pending()
    return direct_router(client, asked, "ada", lambda _request: response).ok


def kinds(result: RunResult) -> list[str]:
    return [str(event.kind) for event in result.events]


def test_a_script_pauses_at_the_call_and_takes_it_up_again(
    downstream: Downstream, tmp_path: Path
) -> None:
    client, record = create_callback_client(), tmp_path / "run.jsonl"
    first = run(calling(FIRST), callbacks=client, record_to=record)
    assert first.outcome.status == "paused"
    assert downstream.sent == []

    assert answered(client, ONCE)
    second = run(calling(FIRST), callbacks=client, record_to=record, resume=True)
    assert second.outcome.status == "pass"
    assert len(downstream.sent) == 1
    # A third session has nothing left to do, and does nothing again.
    third = run(calling(FIRST), callbacks=client, record_to=record, resume=True)
    assert third.outcome.status == "pass"
    assert len(downstream.sent) == 1


def test_a_client_that_knows_nothing_is_asked_once_more(
    downstream: Downstream, tmp_path: Path
) -> None:
    record = tmp_path / "run.jsonl"
    run(calling(FIRST), callbacks=create_callback_client(), record_to=record)
    client = create_callback_client()
    run(calling(FIRST), callbacks=client, record_to=record, resume=True)

    assert answered(client, ONCE)
    done = run(calling(FIRST), callbacks=client, record_to=record, resume=True)
    assert (done.outcome.status, len(downstream.sent)) == ("pass", 1)


def test_a_call_that_had_begun_when_its_script_died_is_asked_about(
    downstream: Downstream, tmp_path: Path
) -> None:
    class Died(BaseException):
        pass

    client, record = create_callback_client(), tmp_path / "run.jsonl"
    run(calling(FIRST), callbacks=client, record_to=record)
    answered(client, ONCE)
    downstream.fails = [Died()]
    with pytest.raises(BaseException):  # noqa: B017, PT011 - what ends a process
        run(calling(FIRST), callbacks=client, record_to=record, resume=True)
    again = run(calling(FIRST), callbacks=client, record_to=record, resume=True)

    assert again.outcome.status == "paused"
    (asked,) = client.list_pending()
    assert asked.gate_id.startswith("doubt:")
    assert downstream.sent == []
    answered(client, {"outcome": "did-not-happen"})
    done = run(calling(FIRST), callbacks=client, record_to=record, resume=True)
    assert (done.outcome.status, len(downstream.sent)) == ("pass", 1)


def test_a_model_is_told_that_somebody_has_to_allow_it(downstream: Downstream) -> None:
    told: list[Any] = []

    def body(ctx: Context) -> str:
        told.append(ctx.try_tool("publish_post", FIRST, on_approval="report"))
        return "told"

    result = run(fn_job("publish", body))

    assert result.outcome.status == "pass"
    (one,) = told
    assert list(one) == ["status", "interactionId", "summary", "message"]
    assert (one["status"], one["summary"]) == ("approval_required", "Publish d1 to linkedin")
    assert "approval.requested" in kinds(result)
    assert downstream.sent == []


def test_a_refusal_is_a_result_for_a_model(downstream: Downstream) -> None:
    client = create_callback_client()
    told: list[Any] = []

    def body(ctx: Context) -> str:
        told.append(ctx.try_tool("publish_post", FIRST))
        told.append(ctx.try_tool("publish_post", {}))
        told.append(ctx.try_tool("nothing_like_it"))
        return "told"

    job = fn_job("publish", body)

    def answer(wire: dict[str, Any]) -> None:
        if wire["kind"] == "approval.requested":
            answered(client, DENY)

    run(job, callbacks=client, on_event=answer, on_callback="wait")

    assert [one["code"] for one in told[-3:]] == ["approval_denied", "invalid_input", "not_found"]


def test_a_script_has_no_conversation_to_allow_it_for(downstream: Downstream) -> None:
    client = create_callback_client()
    run(calling(FIRST), callbacks=client)

    assert not answered(client, CONVERSATION)


def test_a_dry_script_does_nothing_outside(downstream: Downstream) -> None:
    result = run(calling(FIRST), dry_run=True)

    assert result.outcome.status == "pass"
    assert "tool.suppressed" in kinds(result)
    assert downstream.sent == []


def test_a_dry_record_stays_dry_when_it_is_taken_up(downstream: Downstream, tmp_path: Path) -> None:
    def body(ctx: Context) -> str:
        ctx.ask_questions(["Which?"])
        return str(ctx.call_tool("publish_post", FIRST))

    client, record = create_callback_client(), tmp_path / "run.jsonl"
    run(fn_job("publish", body), callbacks=client, record_to=record, dry_run=True)
    answered(client, {"answer": "this"})
    result = run(fn_job("publish", body), callbacks=client, record_to=record, resume=True)

    assert result.outcome.status == "pass"
    assert "tool.suppressed" in kinds(result)


def test_a_step_gives_itself_no_yes(downstream: Downstream) -> None:
    client = create_callback_client()
    asked: list[CallbackRequest] = []

    def body(ctx: Context) -> str:
        asked.extend(ctx.callbacks.list_pending())
        claim = ctx.callbacks.claim(asked[0].request_id, "me")
        return str(claim)

    publish = fn_job("publish", lambda ctx: str(ctx.call_tool("publish_post", FIRST)))
    own = {"publish": {"job": publish}, "self": {"job": fn_job("self", body)}}
    waiting = run(dag("g", own, concurrency=1), callbacks=client)

    assert waiting.outcome.status in ("paused", "fail")
    assert asked
    assert [one.request_id for one in client.list_pending()] == [asked[0].request_id]


def test_only_the_step_itself_calls_tools(downstream: Downstream) -> None:
    def check(ctx: Context, _last: Any) -> bool:
        return bool(ctx.call_tool("publish_post", FIRST))

    job = dag("g", {"a": {"job": fn_job("a", lambda ctx: "a"), "when": predicate(check, "asks")}})
    result = run(job)

    assert "only a step can call tools" in str([event.fields for event in result.events])
    assert downstream.sent == []


def test_two_steps_with_the_same_call_make_it_once(downstream: Downstream) -> None:
    client = create_callback_client()

    def step(name: str, *needs: str) -> dict[str, Any]:
        job = fn_job(name, lambda ctx: str(ctx.call_tool("publish_post", FIRST)))
        return {"job": job, "needs": list(needs)}

    def answer(wire: dict[str, Any]) -> None:
        if wire["kind"] == "approval.requested":
            answered(client, ONCE)

    result = run(
        dag("g", {"a": step("a"), "b": step("b", "a")}),
        callbacks=client,
        on_event=answer,
        on_callback="wait",
    )

    assert result.outcome.status == "pass"
    assert len(downstream.sent) == 1
    assert kinds(result).count("approval.requested") == 1


def test_what_a_tool_reads_is_read_once_in_an_attempt(downstream: Downstream) -> None:
    from runs import tool

    reads: list[int] = []

    def look(_given: Any) -> int:
        reads.append(1)
        return len(reads)

    tool(look, name="look", effect="read")

    def body(ctx: Context) -> str:
        seen = [ctx.call_tool("look"), ctx.call_tool("look")]
        ctx.call_tool("publish_post", FIRST)
        return str(seen)

    client = create_callback_client()

    def answer(wire: dict[str, Any]) -> None:
        if wire["kind"] == "approval.requested":
            answered(client, ONCE)

    result = run(fn_job("publish", body), callbacks=client, on_event=answer, on_callback="wait")

    # The step ran twice; what it saw before the question is what it saw after it.
    assert result.outcome.summary == "[1, 2]"
    assert len(reads) == 2


def test_a_result_that_no_record_holds_is_left_out_and_the_call_counts(
    downstream: Downstream,
) -> None:
    from runs import tool

    def big(_given: Any) -> str:
        return "x" * 100_000

    tool(big, name="big", effect="read")
    result = run(fn_job("read", lambda ctx: str(ctx.call_tool("big"))))

    assert "takes more than 64 KiB" in str(result.outcome.summary)
