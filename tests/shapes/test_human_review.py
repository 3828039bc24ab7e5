"""A person's review as a step and as a loop's review, in one process (gates.md G131-G142)."""

from __future__ import annotations

from typing import Any

import pytest

from runs import Outcome, fn_job, job_meta, loop, pipeline, run
from runs.drivers.callbacks import CallbackClient, create_callback_client
from runs.kernel.errors import DeclarationError
from runs.kernel.interactions import Interaction
from runs.shapes.human_review import human_review

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"feedback": {"type": "object"}, "prompt": {"type": "string"}},
    "required": ["feedback", "prompt"],
}
APPROVED = {"feedback": {"stars": 5}, "prompt": "", "decision": "approved"}
CHANGES = {"feedback": {"stars": 1}, "prompt": "Shorter.", "decision": "changes-requested"}


def desk(answer: Any = None) -> Interaction:
    return Interaction("desk", FORM, answer)


def review(answer: Any = None, **options: Any) -> Any:
    return human_review("check", "Is it ready?", interaction=desk(answer), **options)


def respond(client: CallbackClient, response: Any, router: str = "ada") -> Any:
    (request,) = client.list_pending()
    claim = client.claim(request.request_id, router)
    return client.submit(
        request.request_id, str(claim.claim_token), router, request.digest, response
    )


def kinds(client: CallbackClient) -> list[str]:
    return [str(event["kind"]) for event in client.history()]


def test_the_question_names_who_asks_and_what_is_judged() -> None:
    client = create_callback_client()
    result = run(review(input={"draft": "one"}), callbacks=client)
    assert result.outcome.status == "paused"
    (request,) = client.list_pending()
    assert request.gate_id.startswith("desk:")
    assert request.decision_text == "Is it ready?"
    about: Any = request.input
    assert about["material"] == {"draft": "one"}
    assert about["requester"]["path"] == []
    assert about["requester"]["iteration"] == 0
    assert len(about["requester"]["identity"]) == 64
    assert request.response_schema["required"] == ["feedback", "prompt", "decision"]


def test_only_a_decision_is_taken_and_the_claim_stays_with_who_sent_another_g139() -> None:
    client = create_callback_client()
    run(review(), callbacks=client)
    (request,) = client.list_pending()
    token = str(client.claim(request.request_id, "ada").claim_token)
    for wrong in (
        {"feedback": {}, "prompt": " ", "decision": "changes-requested"},
        {"feedback": {}, "prompt": "x"},
        {"feedback": {}, "prompt": "x", "decision": "yes"},
    ):
        refused = client.submit(request.request_id, token, "ada", request.digest, wrong)
        assert (refused.ok, refused.kind) == (False, "invalid")
    approved = {"feedback": {}, "prompt": "", "decision": "approved"}
    assert client.submit(request.request_id, token, "ada", request.digest, approved).ok
    outcome = run(review(), callbacks=client).outcome
    assert (outcome.status, outcome.data) == ("pass", approved)


def test_changes_fail_the_step_with_the_words_and_the_whole_response_g137() -> None:
    client = create_callback_client()
    run(review(), callbacks=client)
    assert respond(client, CHANGES).ok
    outcome = run(review(), callbacks=client).outcome
    assert (outcome.status, outcome.summary, outcome.data) == ("fail", "Shorter.", CHANGES)
    assert outcome.revision is not None
    assert outcome.revision.target is None


def test_other_material_is_another_question_and_the_old_approval_is_not_for_it_g135() -> None:
    client = create_callback_client()
    run(review(input="one"), callbacks=client)
    respond(client, APPROVED)
    assert run(review(input="two"), callbacks=client).outcome.status == "paused"
    assert run(review(input="one"), callbacks=client).outcome.status == "pass"
    assert client.list_pending() == []


def test_the_material_is_computed_anew_in_every_session_g135() -> None:
    client, drafts = create_callback_client(), ["one"]
    job = review(input=lambda _ctx: {"draft": drafts[-1]})
    run(job, callbacks=client)
    drafts.append("two")
    respond(client, APPROVED)
    assert run(job, callbacks=client).outcome.status == "paused"
    (request,) = client.list_pending()
    assert request.input["material"] == {"draft": "two"}  # type: ignore[index,call-overload]  # it is an object


def written(drafts: list[Any], seen: list[Any]) -> Any:
    def write(ctx: Any) -> str:
        seen.append(None if ctx.last_review is None else ctx.last_review.data)
        return str(drafts[len(seen) - 1])

    return fn_job("write", write)


def test_a_writer_gets_the_whole_response_and_is_run_again_until_it_is_approved_g141() -> None:
    answers, seen = [CHANGES, APPROVED], list[Any]()
    asked: list[Any] = []

    def answer(request: Any, _signal: Any) -> Any:
        asked.append(request.input["material"])
        return answers[len(asked) - 1]

    flow = loop("draft", written(["one", "two"], seen), review=review(answer), max=3)
    outcome = run(flow).outcome
    assert outcome.status == "pass"
    assert asked == ["one", "two"]
    assert seen == [None, CHANGES]


def test_rounds_without_an_approval_end_exhausted_and_never_pass_g138() -> None:
    seen: list[Any] = []
    flow = loop("d", written(["1", "2", "3"], seen), review=review(lambda *_: CHANGES), max=2)
    assert run(flow).outcome.status in ("exhausted", "fail")
    assert len(seen) == 2


def test_the_same_material_in_another_round_is_asked_anew() -> None:
    client, seen = create_callback_client(), list[Any]()
    flow = loop("d", written(["same"] * 3, seen), review=review(), max=3)
    run(flow, callbacks=client)
    first = client.list_pending()[0]
    respond(client, CHANGES)
    assert run(flow, callbacks=client).outcome.status == "paused"
    (second,) = client.list_pending()
    assert second.request_id != first.request_id
    assert second.gate_id == first.gate_id


def test_a_machine_review_may_be_the_body_of_a_persons_g142() -> None:
    rounds: list[str] = []

    def write(_ctx: Any) -> str:
        rounds.append("written")
        return f"draft {len(rounds)}"

    def even(_ctx: Any) -> Outcome:
        return Outcome(status="pass" if len(rounds) % 2 == 0 else "fail", summary="checked")

    machine = loop("machine", fn_job("write", write), review=fn_job("even", even), max=4)
    answers = [CHANGES, APPROVED]
    flow = loop("human", machine, review=review(lambda *_: answers.pop(0)), max=3)
    assert run(flow).outcome.status == "pass"
    assert len(rounds) == 4


def test_a_person_who_puts_it_aside_pauses_the_run_at_once_even_when_it_waits_g132() -> None:
    client, calls = create_callback_client(), list[Any]()

    def answer(request: Any, signal: Any) -> None:
        calls.append((request.gate_id, signal.is_set()))

    result = run(review(answer), callbacks=client, on_callback="wait")
    assert result.outcome.status == "paused"
    assert len(calls) == 1
    assert len(client.list_pending()) == 1
    assert kinds(client) == ["callback-requested", "callback-claimed", "callback-released"]


def test_what_was_put_aside_is_shown_again_when_the_record_goes_on(tmp_path: Any) -> None:
    client, given = create_callback_client(), [None, APPROVED]
    flow = pipeline("p", [{"name": "check", "job": review(lambda *_: given.pop(0))}])
    path = tmp_path / "record.jsonl"
    first = run(flow, callbacks=client, record_to=path, on_callback="wait")
    assert first.outcome.status == "paused"
    again = run(flow, callbacks=client, record_to=path, resume=True)
    assert again.outcome.status == "pass"
    assert given == []


@pytest.mark.parametrize(
    "answer",
    [
        lambda *_: {"feedback": {}, "prompt": "x", "decision": "yes"},
        lambda *_: {"prompt": "x", "decision": "approved"},
        lambda *_: {"feedback": 3, "prompt": "x", "decision": "approved"},
        lambda *_: "approved",
        lambda *_: 1 / 0,
    ],
)
def test_a_handler_that_fails_leaves_the_question_open_g133(answer: Any) -> None:
    client = create_callback_client()
    result = run(review(answer), callbacks=client)
    assert result.outcome.status == "fail"
    assert len(client.list_pending()) == 1


def test_a_handler_may_be_async() -> None:
    async def answer(_request: Any, _signal: Any) -> Any:
        return APPROVED

    assert run(review(answer)).outcome.status == "pass"


def test_a_question_somebody_else_holds_is_waited_for_g131() -> None:
    client = create_callback_client()
    run(review(), callbacks=client)
    (request,) = client.list_pending()
    client.claim(request.request_id, "ada")
    called: list[int] = []
    result = run(review(lambda *_: called.append(1)), callbacks=client)
    assert (result.outcome.status, called) == ("paused", [])


def test_a_superseded_question_ends_the_wait_with_a_pause_g134() -> None:
    client = create_callback_client()

    def supersede(event: Any) -> None:
        if event["kind"] == "callback-routed":
            client.supersede(event["requestId"], event["requestId"])

    result = run(
        review(),
        callbacks=client,
        on_callback="wait",
        on_event=supersede,
    )
    assert result.outcome.status == "paused"


def test_a_finished_writer_does_not_run_again_while_its_review_waits_g140(tmp_path: Any) -> None:
    client, seen = create_callback_client(), list[Any]()
    path = tmp_path / "record.jsonl"
    flow = loop("d", written(["1", "2"], seen), review=review(), max=2)
    stages = [{"name": "draft", "job": flow}]
    run(pipeline("p", stages), callbacks=client, record_to=path)
    for _ in range(2):
        again = run(pipeline("p", stages), callbacks=client, record_to=path, resume=True)
        assert again.outcome.status == "paused"
    assert len(seen) == 1
    respond(client, APPROVED)
    done = run(pipeline("p", stages), callbacks=client, record_to=path, resume=True)
    assert (done.outcome.status, len(seen)) == ("pass", 1)


def test_a_change_in_the_material_is_shown_as_one() -> None:
    client = create_callback_client()
    changes = {"a.py": {"old": "1\n", "new": "2\n"}}
    run(human_review("check", "Right?", input={"changes": changes}), callbacks=client)
    (request,) = client.list_pending()
    assert request.presentation["diff"] == "/material/changes"


def test_a_review_is_known_by_its_question_and_its_form() -> None:
    job = review(target="write")
    assert (job_meta(job) or {})["kind"] == "human-review"
    other = human_review("check", "Is it right?", interaction=desk())
    assert job.shape.to_json() != other.shape.to_json()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: human_review("", "Ready?"), "name"),
        (lambda: human_review("check", " \n"), "question"),
        (lambda: human_review("check", "Ready?", interaction={"id": "x"}), "response_schema"),
        (lambda: human_review("check", "Ready?", input={"at": object()}), "no JSON"),
        (lambda: human_review("check", "Ready?", needed=2), "needed"),
        (
            lambda: human_review("check", "?", expires_in_seconds=3, on_expiry="answer"),
            "clock",
        ),
        (
            lambda: human_review(
                "check",
                "Ready?",
                interaction={"id": "x", "response_schema": {"additionalProperties": False}},
            ),
            "decision",
        ),
    ],
)
def test_a_review_that_cannot_be_is_refused(make: Any, word: str) -> None:
    with pytest.raises(DeclarationError, match=word):
        make()


def test_a_clock_does_not_approve_g138() -> None:
    late = run(review(expires_in_seconds=0.05), on_callback="wait").outcome
    assert late.status == "fail"
    assert "expired" in (late.summary or "")


def test_an_answer_may_be_held_until_somebody_resumes() -> None:
    job: Any = review(on_answer="hold", priority=3, audience={"users": ["ada"]})
    assert job.shape.ask.routing == {
        "audience": {"users": ["ada"]},
        "priority": 3,
        "onAnswer": "hold",
    }
