from __future__ import annotations

from typing import Any

import pytest

from runs.drivers.callbacks import CallbackClient, create_callback_client, direct_router
from runs.drivers.memory import RunResult, run
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import LeafShape
from runs.kernel.outcomes import Finding, Outcome
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job

YES = {"approved": True}
NO = {"approved": False}


def answered(response: Any, **more: Any) -> Outcome:
    """What an approval at the root comes to when its own function answers."""
    return run(approval("ok", "Ship it?", answer=lambda _request: response, **more)).outcome


def respond(client: CallbackClient, response: Any) -> None:
    (request,) = client.list_pending()
    assert direct_router(client, request, "ada", lambda _request: response).ok


def asked(result: RunResult) -> list[Any]:
    return [event.fields["asked"] for event in result.events if event.kind == "job:end"]


def kinds(client: CallbackClient) -> list[str]:
    return [event["kind"].removeprefix("callback-") for event in client.history()]  # type: ignore[union-attr]  # always text


def test_the_question_is_a_gate_of_its_label() -> None:
    client = create_callback_client()
    run(approval("ok", "Ship it?"), callbacks=client)
    (request,) = client.list_pending()

    assert (request.gate_id, request.gate_version, request.decision_text) == ("ok", 1, "Ship it?")
    assert request.input is None
    assert request.response_schema == {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
        "required": ["approved"],
    }


def test_without_an_answer_the_run_pauses_with_the_request() -> None:
    client = create_callback_client()
    result = run(approval("ok", "Ship it?"), callbacks=client)
    (request,) = client.list_pending()

    assert result.outcome == Outcome(
        status="paused", summary="waiting for a person: Ship it?", data=request.to_wire()
    )
    assert asked(result) == [
        {"requestId": request.request_id, "gateId": "ok", "question": "Ship it?"}
    ]


@pytest.mark.parametrize(
    ("response", "data"),
    [
        (YES, YES),
        ({**YES, "note": ""}, YES),
        ({**YES, "note": None}, YES),
        ({**YES, "note": "mind token=abc", "more": 1}, {**YES, "note": "mind [redacted]"}),
    ],
)
def test_yes_passes_and_keeps_only_a_note(response: Any, data: Any) -> None:
    assert answered(response) == Outcome(status="pass", summary="approved: Ship it?", data=data)


def test_no_sends_back_with_the_note_as_the_finding() -> None:
    made = answered({**NO, "note": "ask me@x.io first"}, target="build")
    note = "ask [redacted] first"

    assert made.status == "fail"
    assert made.summary == note
    assert made.data == {"approved": False, "note": note}
    assert made.revision is not None
    assert (made.revision.target, made.revision.reason) == ("build", note)
    assert made.revision.findings == (Finding(evidence=note),)
    assert made.revision.rerun == "target-and-dependents"


@pytest.mark.parametrize("note", [None, "", "  "])
def test_no_without_note_or_target_fails_in_our_words(note: Any) -> None:
    made = answered({**NO, "note": note})

    assert (made.status, made.summary, made.revision) == ("fail", "refused: Ship it?", None)


def test_the_stored_answer_keeps_its_bytes() -> None:
    client = create_callback_client()
    answer = {**YES, "note": "token=abc"}
    run(approval("ok", "Ship it?", answer=lambda _request: answer), callbacks=client)

    assert client.history()[-1]["response"] == answer
    assert client.history()[-1]["routerId"] == "ok:answer"


def test_the_input_is_the_summary_of_each_need_by_default() -> None:
    flow = dag(
        "flow",
        {
            "a": fn_job("a", lambda _ctx: "v1"),
            "b": {"job": fn_job("b", lambda _ctx: {"status": "fail"}), "optional": True},
            "ok": {"job": approval("ok", "Ship it?"), "needs": ["a", "b"]},
        },
    )
    client = create_callback_client()
    run(flow, callbacks=client)

    assert client.list_pending()[0].input == {"a": "v1", "b": "fail"}


@pytest.mark.parametrize("given", [{"n": [1, None]}, None, "text", 0])
def test_an_explicit_input_reaches_the_answer_unchanged(given: Any) -> None:
    seen: list[Any] = []
    run(approval("ok", "Ship it?", input=given, answer=lambda r: seen.append(r.input) or YES))  # type: ignore[func-returns-value]  # said in one line

    assert seen == [given]


def test_an_input_may_be_a_function_of_the_context() -> None:
    flow = pipeline(
        "p",
        [
            {"name": "a", "job": fn_job("a", lambda _ctx: "v1")},
            {
                "name": "ok",
                "job": approval("ok", "Ship?", input=lambda ctx: ctx.needs["a"].summary),
            },
        ],
    )
    client = create_callback_client()
    run(flow, callbacks=client)

    assert client.list_pending()[0].input == "v1"
    respond(client, YES)
    assert run(flow, callbacks=client).outcome.status == "pass"


def test_an_input_that_is_no_json_fails_the_step() -> None:
    made = run(approval("ok", "Ship it?", input=lambda _ctx: {1, 2})).outcome

    assert made.error is not None
    assert (made.status, made.error["code"]) == ("fail", "VALIDATION")


def test_what_was_declared_is_what_is_asked() -> None:
    subject: dict[str, Any] = {"files": ["a"]}
    job = approval("ok", "Ship it?", input=subject)
    subject["files"].append("b")
    client = create_callback_client()
    run(job, callbacks=client)

    assert client.list_pending()[0].input == {"files": ["a"]}


def test_an_answer_that_is_there_is_used_without_asking() -> None:
    client = create_callback_client()
    job = approval("ok", "Ship it?")
    run(job, callbacks=client)
    respond(client, YES)
    before = client.history()

    for again in (job, approval("ok", "Ship it?", answer=lambda _request: NO)):
        result = run(again, callbacks=client)
        assert result.outcome.status == "pass"
        assert asked(result)[0]["gateId"] == "ok"
    assert client.history() == before


@pytest.mark.parametrize("by_worker", [True, False])
def test_an_old_answer_ends_the_question_that_took_its_place(by_worker: bool) -> None:
    """Upstream goes v1, v2, v1: the answer about v1 applies, nothing stays open (D8)."""

    def flow(version: str) -> Any:
        subject: Any = (lambda _ctx: version) if by_worker else version
        return approval("ok", "Ship it?", input=subject)

    client = create_callback_client()
    run(flow("v1"), callbacks=client)
    respond(client, YES)
    assert run(flow("v2"), callbacks=client).outcome.status == "paused"
    assert run(flow("v1"), callbacks=client).outcome.status == "pass"
    assert client.list_pending() == []


def test_back_and_forth_leaves_one_open_question_about_the_last() -> None:
    client = create_callback_client()
    for version in ("v1", "v2", "v1"):
        run(approval("ok", "Ship it?", input=version), callbacks=client)

    (request,) = client.list_pending()
    assert request.input == "v1"
    respond(client, YES)
    assert run(approval("ok", "Ship it?", input="v1"), callbacks=client).outcome.status == "pass"


def test_an_answer_function_that_raises_leaves_the_question_open() -> None:
    def fails(_request: Any) -> Any:
        raise RuntimeError("offline")

    client = create_callback_client()
    made = run(approval("ok", "Ship it?", answer=fails), callbacks=client).outcome

    assert (made.status, made.summary) == ("fail", "offline")
    assert len(client.list_pending()) == 1
    assert kinds(client) == ["requested", "claimed", "released"]


@pytest.mark.parametrize("wrong", [{"approved": "yes"}, {}, None, 3])
def test_a_wrong_answer_fails_and_leaves_the_question_open(wrong: Any) -> None:
    client = create_callback_client()
    made = run(approval("ok", "Ship it?", answer=lambda _r: wrong), callbacks=client).outcome

    assert made.status == "fail"
    assert len(client.list_pending()) == 1


def test_an_answer_function_may_be_async() -> None:
    async def answer(_request: Any) -> Any:
        return YES

    assert run(approval("ok", "Ship it?", answer=answer)).outcome.status == "pass"


def test_a_question_held_by_somebody_else_fails_the_answering_step() -> None:
    client = create_callback_client()
    run(approval("ok", "Ship it?"), callbacks=client)
    client.claim(client.list_pending()[0].request_id, "ada")
    made = run(approval("ok", "Ship it?", answer=lambda _r: YES), callbacks=client).outcome

    assert made.error is not None
    assert made.error["code"] == "VALIDATION"
    assert "claimed" in str(made.summary)


def test_the_kernel_asks_by_itself_unless_code_is_needed() -> None:
    def by_worker(**more: Any) -> bool:
        shape = approval("ok", "Ship it?", **more).shape
        assert isinstance(shape, LeafShape)
        return shape.by_worker

    assert not by_worker()
    assert not by_worker(input={"n": 1}, target="x")
    assert by_worker(input=lambda _ctx: 1)
    assert by_worker(answer=lambda _request: YES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": ""},
        {"question": ""},
        {"question": None},
        {"on_answer": "later"},
        {"answer": YES},
        {"input": {1, 2}},
        {"presentation": {"x": object()}},
    ],
)
def test_an_approval_that_cannot_be_is_refused_when_declared(wrong: Any) -> None:
    with pytest.raises(DeclarationError):
        approval(**{"label": "ok", "question": "Ship it?", **wrong})
