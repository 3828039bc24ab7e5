from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from gates import local_callbacks
from runs import approval, dag, fn_job, kickback, notifier, run
from runs.drivers.notifier import Message
from tests import receivers


def job(**more: Any) -> Any:
    return dag(
        "release",
        {
            "build": {"job": fn_job("build", lambda ctx: "made")},
            "ok": {"job": approval("ok", "Ship it?"), "needs": ["build"]},
            "legal": {"job": approval("legal", "Is it legal?"), "needs": ["build"]},
            "ship": {"job": fn_job("ship", lambda ctx: "shipped"), "needs": ["ok", "legal"]},
            **more,
        },
    )


def kinds(messages: list[Message]) -> list[str]:
    return [message["event"] for message in messages]


def test_each_thing_worth_knowing_is_one_message_in_order() -> None:
    got: list[Message] = []
    tell = notifier(got.append)

    run(dag("two", {"a": {"job": fn_job("a", lambda ctx: "one")},
                    "b": {"job": fn_job("b", lambda ctx: 1 / 0), "needs": ["a"]}}),
        on_event=tell)  # fmt: skip

    assert tell.done(10)
    assert kinds(got) == ["run-started", "stage-finished", "stage-finished", "failed"]
    assert [one.get("stage") for one in got[1:3]] == ["a", "b"]
    assert all(isinstance(one["ts"], int) and one["text"] for one in got)
    assert "monitor" not in got[0]


def test_a_run_that_passes_says_so_last() -> None:
    got: list[Message] = []
    tell = notifier(got.append)

    run(dag("one", {"a": {"job": fn_job("a", lambda ctx: "made")}}), on_event=tell)

    assert tell.done(10)
    assert kinds(got) == ["run-started", "stage-finished", "finished"]


def test_two_gates_give_two_messages_with_their_questions_and_the_page(tmp_path: Path) -> None:
    got: list[Message] = []
    tell = notifier(got.append)
    store = local_callbacks(tmp_path / "callbacks", "run-1")

    result = run(
        job(), on_event=tell, callbacks=store, record_to=tmp_path / "record.jsonl", monitor=True
    )

    assert tell.done(10)
    assert result.monitor is not None
    result.monitor.close()
    assert kinds(got) == ["run-started", "stage-finished", "paused", "paused"]
    assert [one["question"] for one in got[2:]] == ["Ship it?", "Is it legal?"]
    assert {one["monitor"] for one in got[2:]} == {result.monitor.url}


def test_a_run_that_is_one_question_pauses_with_it() -> None:
    got: list[Message] = []
    tell = notifier(got.append)

    run(approval("ok", "Ship it?"), on_event=tell)

    assert tell.done(10)
    assert kinds(got) == ["run-started", "paused"]
    assert got[1]["question"] == "Ship it?"


def test_a_run_that_is_taken_up_again_does_not_start_again(tmp_path: Path) -> None:
    store = local_callbacks(tmp_path / "callbacks", "run-1")
    record = tmp_path / "record.jsonl"
    run(job(), callbacks=store, record_to=record)
    for question in store.list_pending():
        claimed = store.claim(question.request_id, "ada")
        assert claimed.claim_token is not None
        store.submit(
            question.request_id, claimed.claim_token, "ada", question.digest, {"approved": True}
        )
    got: list[Message] = []
    tell = notifier(got.append)

    run(job(), callbacks=store, record_to=record, resume=True, on_event=tell)

    assert tell.done(10)
    assert "run-started" not in kinds(got)
    assert kinds(got)[-1] == "finished"


def test_work_that_is_sent_back_is_told_with_the_reason() -> None:
    got: list[Message] = []
    tell = notifier(got.append)
    rounds: list[int] = []

    def check(ctx: Any) -> Any:
        rounds.append(1)
        return kickback("write", "too short") if len(rounds) == 1 else "good"

    nodes = {
        "write": {"job": fn_job("write", lambda ctx: "text")},
        "check": {
            "job": fn_job("check", check),
            "needs": ["write"],
            "accepts_kickback_to": ["write"],
        },
    }
    graph = dag("doc", nodes, max_kickbacks=1)
    run(graph, on_event=tell)

    assert tell.done(10)
    (sent,) = [one for one in got if one["event"] == "sent-back"]
    assert sent["text"] == "check sent the work back to write: too short"
    assert kinds(got)[-1] == "finished"


def test_a_delivery_that_fails_or_hangs_harms_neither_run_nor_order() -> None:
    free, got = threading.Event(), list[Message]()
    errors: list[tuple[str, str]] = []

    def post(message: Message) -> None:
        free.wait(20)
        if message["event"] == "stage-finished":
            raise ConnectionError("down")
        got.append(message)

    tell = notifier(post, on_error=lambda error, one: errors.append((str(error), one["event"])))
    result = run(dag("one", {"a": {"job": fn_job("a", lambda ctx: "made")}}), on_event=tell)

    assert result.outcome.status == "pass"
    assert got == []
    assert not tell.done(0.01)
    free.set()
    assert tell.done(10)
    assert kinds(got) == ["run-started", "finished"]
    assert errors == [("down", "stage-finished")]


def test_messages_arrive_at_an_address_as_json() -> None:
    with receivers.receiver() as hook:
        tell = notifier(hook.url)
        run(fn_job("a", lambda ctx: "made"), on_event=tell)
        assert tell.done(10)

    assert kinds(hook.messages) == ["run-started", "finished"]


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://example.com/", "example.com"])
def test_only_addresses_of_the_web_are_posted_to(address: str) -> None:
    with pytest.raises(ValueError, match="begins with http"):
        notifier(address)
