"""A role that a person fills, as input and as reviewer (gates.md G143-G146)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import fn_job, job_meta, loop, pipeline, run
from runs.drivers.callbacks import create_callback_client, direct_router
from runs.kernel.annotations import line_comments
from runs.kernel.errors import DeclarationError
from runs.kernel.interactions import Interaction
from runs.kernel.jsonable import digest_hex
from runs.shapes.person import input_job, person, review_job

DESK = Interaction("desk", {"properties": {"feedback": {"type": "object"}}})


@pytest.mark.parametrize("question", ["", "  \n", None])
def test_a_blank_question_is_refused_g145(question: Any) -> None:
    with pytest.raises(DeclarationError, match="question"):
        person(question)


def test_a_person_without_a_form_says_yes_or_no_under_the_name_of_the_stage_g143() -> None:
    job = input_job(person("Ship it?"), "ship", "write", "the brief")
    meta = job_meta(job) or {}
    assert (meta["kind"], meta["target"]) == ("approval", "write")
    client = create_callback_client()
    flow = pipeline("p", [{"name": "ship", "job": job}])
    run(flow, callbacks=client)
    (request,) = client.list_pending()
    assert (request.gate_id, request.decision_text) == ("ship", "Ship it?")
    assert direct_router(client, request, "ada", lambda _request: {"approved": True}).ok
    assert run(flow, callbacks=client).outcome.status == "pass"


def test_a_person_with_a_form_answers_over_the_brief_and_decides_nothing_g143() -> None:
    client = create_callback_client()
    job = input_job(person("Which tone?", DESK), "tone", "write", "Write a letter.")
    assert run(job, callbacks=client).outcome.status == "paused"
    (request,) = client.list_pending()
    about: Any = request.input
    assert about["material"] == "Write a letter."
    assert request.response_schema["required"] == ["feedback", "prompt"]
    blank = {"feedback": {}, "prompt": " "}
    assert direct_router(client, request, "ada", lambda _request: blank).kind == "invalid"
    answer = {"feedback": {"tone": "calm"}, "prompt": "Calm, please.", "more": 1}
    assert direct_router(client, request, "ada", lambda _request: answer).ok
    outcome = run(job, callbacks=client).outcome
    assert (outcome.status, outcome.summary, outcome.data) == ("pass", "Calm, please.", answer)


def test_a_reviewing_person_needs_a_form_g144() -> None:
    with pytest.raises(DeclarationError, match="interaction"):
        review_job(person("Good?"), "write", ["a.md"])


def test_a_person_reviews_the_files_of_a_stage_and_they_come_back_to_the_writer(
    tmp_path: Path,
) -> None:
    seen: list[Any] = []

    def write(ctx: Any) -> str:
        seen.append(ctx.last_review and ctx.last_review.data["feedback"])
        (ctx.workspace.dir / "a.md").write_text(f"draft {len(seen)}\n")
        return "written"

    answers = [
        {"feedback": {"annotations": []}, "prompt": "Again.", "decision": "changes-requested"},
        {"feedback": {}, "prompt": "", "decision": "approved"},
    ]
    shown: list[Any] = []

    def answer(request: Any, _signal: Any) -> Any:
        shown.append((request.input["material"], request.presentation["diff"]))
        return answers[len(shown) - 1]

    role = person("Good?", line_comments(answer=answer))
    flow = loop("write", fn_job("write", write), review=review_job(role, "write", ["a.md"]), max=2)
    assert run(flow, cwd=tmp_path).outcome.status == "pass"
    assert shown == [({"a.md": "draft 1\n"}, "/material"), ({"a.md": "draft 2\n"}, "/material")]
    assert seen == [None, {"annotations": []}]


def test_a_file_that_is_missing_or_too_long_is_not_reviewed(tmp_path: Path) -> None:
    job = review_job(person("Good?", line_comments()), "write", ["a.md"])
    assert "a.md" in (run(job, cwd=tmp_path).outcome.summary or "")
    (tmp_path / "a.md").write_text("x" * (1024 * 1024 + 1))
    outcome = run(job, cwd=tmp_path).outcome
    assert outcome.status == "fail"
    assert "too long" in (outcome.summary or "")


def test_another_question_is_another_role_to_a_workflows_identity_g146() -> None:
    def identity(*given: Any) -> str:
        return digest_hex(person(*given).to_json())

    assert identity("Which tone?", DESK) == identity("Which tone?", DESK)
    assert identity("Which tone?", DESK) != identity("Which voice?", DESK)
    assert identity("Which tone?", DESK) != identity("Which tone?", line_comments())
    assert identity("Which tone?", DESK) != identity("Which tone?")


def test_who_may_answer_is_said_with_the_person() -> None:
    role = person("Good?", DESK, audience={"groups": ["Editors"]}, priority=3)
    shape: Any = input_job(role, "tone", None, "brief").shape
    assert shape.ask.routing["audience"] == {"groups": ["Editors"]}
    with pytest.raises(DeclarationError, match="needed"):
        person("Good?", DESK, needed=2)
