"""Reviews in the service: what is recorded, by whom, and what it leads to (gates.md section 12)."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.errors import AnswerRefused
from gates.models import Request, Response
from gates.projector import rebuild_requests
from runs import human_review, pipeline, sweep
from runs.kernel.interactions import Interaction, interaction_request
from runs.models import Run
from runs.stored import RecordCallbacks
from tests import factories, flows
from tests.gates import calls
from tests.gates.reviewing import (
    CHANGES,
    WITH_CHANGES,
    asked,
    open_question,
    response,
    said,
    submit,
    written,
)

pytestmark = pytest.mark.django_db

ADA = {"kind": "human", "id": "ada"}


def kept(row: Request) -> list[Any]:
    answer = Response.objects.get(request=row).response
    listed: list[Any] = answer["feedback"]["annotations"]
    return listed


def test_the_run_waits_for_the_person_who_was_asked() -> None:
    run, row = asked()

    assert (run.status, run.waiting_on) == (Run.Status.WAITING, ["gate"])
    assert (row.kind, row.status) == (Request.Kind.GATE, Request.Status.PENDING)
    assert row.input["material"] == WITH_CHANGES
    assert row.presentation["diff"] == "/material/changes"
    assert flows.ready(run) == []


def test_comments_come_back_to_the_writer_which_runs_again_and_is_approved() -> None:
    seen: list[Any] = []
    run, row = asked(seen)

    receipt = submit(row, response(said("Say it in English."), said("Why?", position=4)))
    assert receipt.next == "resumed"
    flows.work(run)
    assert seen[0] is None
    assert seen[1]["prompt"] == "x"
    assert [one["body"] for one in seen[1]["feedback"]["annotations"]] == [
        "Say it in English.",
        "Why?",
    ]
    assert [one["author"] for one in seen[1]["feedback"]["annotations"]] == [ADA, ADA]

    again = open_question(run)
    assert again.pk != row.pk
    assert again.input["requester"]["iteration"] == 2
    submit(again, response(decision="approved", prompt=""))
    flows.work(run)
    assert flows.fresh(run).status == Run.Status.PASSED
    assert len(seen) == 2


def test_who_says_it_is_whoever_is_signed_in_and_not_who_the_body_names() -> None:
    _, row = asked()
    forged = {**said(), "author": {"kind": "human", "id": "ben"}, "createdAt": "1999-01-01"}

    submit(row, response(forged))

    (one,) = kept(row)
    assert one["author"] == ADA
    assert one["createdAt"] > "2020"
    assert one["createdAt"].endswith("Z")


def test_a_program_says_it_under_the_name_of_its_key() -> None:
    run = flows.ran(_for_keys())
    row = open_question(run)
    bot = calls.program("deploy-bot")

    answer = bot.post(
        f"/requests/{row.pk}/submit", {"digest": row.digest, "response": response(said())}
    )

    assert answer.status_code == 200
    assert kept(row)[0]["author"] == {"kind": "key", "id": "deploy-bot"}


def _for_keys() -> Any:
    job = human_review("review", "Right?", input=WITH_CHANGES, audience={"keys": ["deploy-bot"]})
    return pipeline("bots", [{"name": "review", "job": job}])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (response(), "at least one line"),
        (response(said(), decision="approved"), "no comments"),
        (response(said(position=99)), "at least one line"),
        (response(*[said() for _ in range(501)]), "500"),
    ],
)
def test_a_decision_that_its_comments_speak_against_is_refused_and_nothing_is_kept(
    given: Any, words: str
) -> None:
    _, row = asked()

    with pytest.raises(AnswerRefused, match=words):
        submit(row, given)

    row.refresh_from_db()
    assert row.status == Request.Status.PENDING
    assert not Response.objects.filter(request=row).exists()


def test_a_comment_on_no_line_of_the_change_is_dropped() -> None:
    _, row = asked()

    submit(row, response(said("kept"), said("lost", position=99), said("lost", target="c.py")))

    assert [one["body"] for one in kept(row)] == ["kept"]


@pytest.mark.parametrize(
    "given",
    [
        {"feedback": {}, "prompt": "x"},
        {"feedback": {}, "prompt": "x", "decision": "yes"},
        {"feedback": {}, "prompt": " ", "decision": "changes-requested"},
        {"feedback": {"annotations": "x"}, "prompt": "x", "decision": "approved"},
        {"feedback": {"annotations": [3]}, "prompt": "x", "decision": 3},
        {"prompt": "x", "decision": "approved"},
    ],
)
def test_what_is_no_review_is_refused_and_the_claim_stays(given: Any) -> None:
    _, row = asked()
    claimed = services.claim(row.pk, principal=factories.ada())

    with pytest.raises(AnswerRefused):
        services.submit(
            row.pk,
            principal=factories.ada(),
            token=claimed.token,
            digest=row.digest,
            response=given,
        )

    row.refresh_from_db()
    assert row.status == Request.Status.CLAIMED


def test_the_same_review_sent_twice_is_one_answer() -> None:
    _, row = asked()
    first = submit(row, response(said()))

    again = submit(row, response(said()))

    assert (again.seq, again.already_resolved) == (first.seq, True)
    assert Response.objects.filter(request=row).count() == 1


def test_a_review_without_a_change_needs_words_alone() -> None:
    _, row = asked(material={"draft": "words"})

    submit(row, response(prompt="Shorter, please."))

    row.refresh_from_db()
    assert row.status == Request.Status.ANSWERED
    assert "diff" not in row.presentation


def test_when_every_round_is_refused_the_work_does_not_pass() -> None:
    seen: list[Any] = []
    run, row = asked(seen)
    for _ in range(3):
        submit(row, response(said()))
        flows.work(run)
        row = Request.objects.filter(run=run).order_by("-asked_seq").first() or row

    assert flows.fresh(run).status != Run.Status.PASSED
    assert flows.fresh(run).is_final
    assert len(seen) == 3


def test_material_that_changed_while_it_was_looked_at_is_asked_about_again() -> None:
    drafts = [CHANGES]
    run = flows.ran(written(material=lambda _ctx: {"changes": drafts[-1]}))
    row = open_question(run)
    drafts.append({"src/a.py": {"old": "a\n", "new": "b\n"}})

    submit(row, response(decision="approved", prompt=""))
    flows.work(run)

    again = open_question(run)
    assert again.input["material"] == {"changes": drafts[-1]}
    assert flows.fresh(run).status == Run.Status.WAITING


def test_rows_made_anew_from_the_record_of_reviews_are_the_same() -> None:
    run, row = asked()
    submit(row, response(said()))
    flows.work(run)
    before = [dict(one) for one in Request.objects.filter(run=run).order_by("pk").values()]

    assert len(before) == 2
    assert rebuild_requests(run) == 0
    after = [dict(one) for one in Request.objects.filter(run=run).order_by("pk").values()]
    assert after == before


def test_what_the_handler_of_a_lost_step_had_claimed_is_free_again() -> None:
    desk = Interaction("desk", {}, lambda *_: None)
    job = human_review("check", "Ok?", interaction=desk, audience=factories.FOR_ADA)
    run = flows.start(pipeline("lost", [{"name": "check", "job": job}]))
    pk = flows.claimed(run)
    client = RecordCallbacks(run.pk, path=("lost", "check"))
    request = interaction_request(
        desk, path=("lost", "check"), question="Ok?", input=1, review=True
    )
    client.post(request)
    assert client.claim(request.request_id, desk.router).ok

    assert sweep.lose(pk, whatever_the_lease=True)

    row = Request.objects.get(run=run)
    assert row.status == Request.Status.PENDING
