"""A question inside `run()`: leaving at it, waiting for it, coming back to it."""

from __future__ import annotations

import threading
import time
from typing import Any

from runs.drivers.callbacks import CallbackClient, create_callback_client, direct_router
from runs.drivers.memory import RunResult, run
from runs.drivers.signal import Signal
from runs.kernel.outcomes import EXIT_PAUSED, Outcome, exit_code_for
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, pipeline, sequence
from runs.shapes.steps import fn_job

YES = {"approved": True}


def flow(work: Any = lambda _ctx: "v1", after: Any = lambda _ctx: None) -> Any:
    return pipeline(
        "release",
        [
            {"name": "build", "job": fn_job("build", work)},
            {"name": "ok", "job": approval("ok", "Ship it?")},
            {"name": "ship", "job": fn_job("ship", after)},
        ],
    )


def respond(client: CallbackClient, response: Any = YES) -> None:
    (request,) = client.list_pending()
    assert direct_router(client, request, "ada", lambda _request: response).ok


def when_asked(client: CallbackClient, act: Any) -> threading.Thread:
    """Act, from another thread, as soon as a question is out."""

    def watch() -> None:
        deadline = time.monotonic() + 10
        while not client.list_pending() and time.monotonic() < deadline:
            threading.Event().wait(0.005)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def done(result: RunResult, node: str) -> list[str]:
    return [
        event.fields["outcome"]["status"]
        for event in result.events
        if event.kind == "dag:node" and event.fields["node"] == node and "outcome" in event.fields
    ]


def test_by_default_the_run_leaves_at_the_question() -> None:
    client = create_callback_client()
    shipped: list[Any] = []
    result = run(flow(after=shipped.append), callbacks=client)

    assert result.outcome.status == "paused"
    assert exit_code_for(result.outcome) == EXIT_PAUSED == 75
    assert result.outcome.summary == "waiting for a person: Ship it?"
    assert shipped == []
    assert done(result, "ok") == ["paused"]
    assert done(result, "ship") == []
    assert client.list_pending()[0].input == {"build": "v1"}


def test_asking_again_with_the_same_client_asks_one_question() -> None:
    client = create_callback_client()
    for _ in range(5):
        result = run(flow(), callbacks=client)
        assert result.outcome.status == "paused"

    assert [event["kind"] for event in client.history()] == ["callback-requested"]


def test_after_the_answer_the_next_run_carries_on_and_the_answer_stays() -> None:
    client = create_callback_client()
    run(flow(), callbacks=client)
    respond(client)
    before = client.history()

    assert run(flow(), callbacks=client).outcome.status == "pass"
    assert run(flow(), callbacks=client).outcome.status == "pass"
    assert client.history() == before


def test_a_fresh_client_asks_anew() -> None:
    assert run(flow()).outcome.status == "paused"
    assert run(flow()).outcome.status == "paused"


def test_a_changed_subject_is_a_new_question_and_ends_the_old_one() -> None:
    client = create_callback_client()
    run(flow(), callbacks=client)
    (old,) = client.list_pending()
    run(flow(lambda _ctx: "v2"), callbacks=client)

    (new,) = client.list_pending()
    assert new.input == {"build": "v2"}
    assert not client.claim(old.request_id, "ada").ok


def test_wait_stays_until_somebody_answers() -> None:
    client = create_callback_client()
    thread = when_asked(client, lambda: respond(client))
    result = run(flow(), callbacks=client, on_callback="wait")
    thread.join()

    assert result.outcome.status == "pass"
    # Recorded as paused before it waited, so that a killed waiter resumes at its question.
    assert done(result, "ok") == ["paused", "pass"]
    ends = [event for event in result.events if event.path == ("release", "ok")]
    assert [event.kind for event in ends].count("job:end") == 1


def test_wait_ends_with_a_no() -> None:
    client = create_callback_client()
    thread = when_asked(client, lambda: respond(client, {"approved": False, "note": "not today"}))
    result = run(flow(), callbacks=client, on_callback="wait")
    thread.join()

    assert result.outcome.status == "fail"
    assert done(result, "ok") == ["paused", "fail"]


def test_wait_ends_when_the_question_is_superseded() -> None:
    client = create_callback_client()
    thread = when_asked(
        client, lambda: client.supersede(client.list_pending()[0].request_id, "another")
    )
    result = run(flow(), callbacks=client, on_callback="wait")
    thread.join()

    assert result.outcome.status == "fail"
    assert "superseded" in str(result.outcome.to_json())


def test_a_cancel_ends_the_wait_and_keeps_the_question() -> None:
    client, signal = create_callback_client(), Signal()
    thread = when_asked(client, signal.set)
    result = run(flow(), callbacks=client, on_callback="wait", signal=signal)
    thread.join()

    assert result.outcome.status == "aborted"
    assert exit_code_for(result.outcome) == 130
    respond(client)
    assert run(flow(), callbacks=client).outcome.status == "pass"


def test_a_question_asked_in_one_mode_is_answered_in_the_other() -> None:
    client = create_callback_client()
    run(flow(), callbacks=client)
    (asked,) = client.list_pending()
    thread = when_asked(client, lambda: respond(client))
    result = run(flow(), callbacks=client, on_callback="wait")
    thread.join()

    assert result.outcome.status == "pass"
    assert client.history()[0]["request"] == asked.to_wire()
    assert len(client.history()) == 3


def test_other_branches_finish_before_the_run_leaves() -> None:
    ran: list[str] = []
    job = dag(
        "g",
        {
            "ok": approval("ok", "Ship?"),
            "a": fn_job("a", lambda _ctx: ran.append("a")),
            "b": Node(job=fn_job("b", lambda _ctx: ran.append("b")), needs="a"),
        },
    )
    result = run(job)

    assert ran == ["a", "b"]
    assert result.outcome.status == "paused"


def test_a_paused_optional_step_still_pauses_the_run() -> None:
    job = dag("g", {"ok": Node(job=approval("ok", "Ship?"), optional=True)})

    assert run(job).outcome.status == "paused"


def test_an_inner_question_pauses_every_graph_around_it() -> None:
    result = run(sequence("outer", dag("inner", {"ok": approval("ok", "Ship?")})))
    ends = [event.path for event in result.events if event.kind == "dag:end"]

    assert ends == [("outer", "step-0", "inner"), ("outer",)]
    assert done(result, "step-0") == ["paused"]
    assert result.outcome.summary == "waiting for a person: Ship?"


def test_an_answer_on_hold_applies_to_the_run_that_starts_after_it() -> None:
    client = create_callback_client()
    job = approval("ok", "Ship it?", on_answer="hold")
    assert run(job, callbacks=client).outcome.status == "paused"
    respond(client)

    assert run(job, callbacks=client).outcome.status == "pass"


def test_a_body_may_put_its_own_question_and_pause() -> None:
    request = approval_request()

    def asks(ctx: Any) -> Any:
        ctx.callbacks.post(request)
        for event in ctx.callbacks.history(request.request_id):
            if event["kind"] == "callback-submitted":
                return Outcome(status="pass", data=event["response"])
        return Outcome(status="paused", summary="asked", data=request.to_wire())

    client = create_callback_client()

    def answer_once_paused(wire: Any) -> None:
        if wire["kind"] == "dag:node" and wire.get("outcome", {}).get("status") == "paused":
            respond(client)

    result = run(
        dag("g", {"a": fn_job("a", asks)}),
        callbacks=client,
        on_callback="wait",
        on_event=answer_once_paused,
    )

    assert result.outcome.status == "pass"
    assert done(result, "a") == ["paused", "pass"]


def test_a_pause_about_a_question_nobody_put_asks_nobody() -> None:
    data = approval_request().to_wire()
    job = fn_job("a", lambda _ctx: Outcome(status="paused", summary="x", data=data))
    result = run(dag("g", {"a": job}), on_callback="wait")

    assert result.outcome.status == "paused"
    assert all("asked" not in event.fields for event in result.events)


def approval_request() -> Any:
    client = create_callback_client()
    run(approval("own", "Really?"), callbacks=client)
    return client.list_pending()[0]
