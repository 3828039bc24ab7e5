"""Work that passed with open findings: whoever says yes to it has read them (design D22)."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.models import Request
from runs import approval, dag, fn_job
from runs.kernel.findings import Finding
from runs.kernel.outcomes import Outcome
from runs.models import Step
from tests import factories, flows
from tests.gates.calls import person
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db


def asked_after(findings: list[dict[str, str]]) -> Request:
    """A question behind `review`, which left these findings open, and beside `other`."""
    job = dag(
        "flow",
        {
            "build": fn_job("build", str),
            "review": {"job": fn_job("review", str), "needs": ["build"]},
            "other": fn_job("other", str),
            "approve": approval("approve", "Ship it?", audience=factories.FOR_ADA),
        },
    )
    row = factories.pending_gate(factories.make_run(job))
    steps = Step.objects.filter(run=row.run_id)
    outcome = {"status": "pass", "openFindings": findings}
    steps.filter(name__in=["review", "other"]).update(outcome=outcome, status="passed")
    approve = steps.get(name="approve")
    approve.needs = ["review"]
    approve.save(update_fields=["needs"])
    services.claim(row.pk, principal=factories.ada())
    return row


def answer(row: Request, verdict: str, **more: str) -> Any:
    sent = {"f-approved": verdict, "digest": row.digest, **more}
    return client_of(factories.ada()).post(f"/gates/{row.pk}/answer/", sent)


FOUND = {"evidence": "No test for <b>zero</b>.", "severity": "should-fix", "reviewer": "ines"}


def test_open_findings_of_what_it_needs_stand_above_the_buttons() -> None:
    row = asked_after([FOUND])

    page = page_of(client_of(factories.ada()).get(row.get_absolute_url()))

    (box,) = page.all(class_="findings")
    assert "review, should-fix: No test for <b>zero</b>. (ines)" in box.text
    assert box.text.count("should-fix") == 1


def test_a_yes_without_the_tick_is_refused_and_keeps_the_note() -> None:
    row = asked_after([FOUND])

    refused = answer(row, "true", **{"f-note": "Fine by me"})

    assert refused.status_code == 422
    page = page_of(refused)
    assert "seen the open findings" in page.one(role="alert").text
    assert page.one("textarea", name="f-note").text == "Fine by me"
    assert not row.responses.exists()


@pytest.mark.parametrize(("verdict", "more"), [("true", {"seen_findings": "on"}), ("false", {})])
def test_a_yes_with_the_tick_counts_and_a_no_needs_none(verdict: str, more: dict[str, str]) -> None:
    row = asked_after([FOUND])

    answer(row, verdict, **more)

    assert row.responses.get().response == {"approved": verdict == "true"}


def test_without_findings_nothing_is_asked() -> None:
    row = asked_after([])

    answer(row, "true")

    assert row.responses.exists()


def asked_by_a_flow() -> Request:
    """The same of a run whose record says it."""

    def review(ctx: object) -> Outcome:
        return Outcome(status="pass", open_findings=(Finding(evidence="No test for zero."),))

    job = dag(
        "flow",
        {
            "review": fn_job("review", review),
            "approve": {
                "job": approval("approve", "Ship it?", audience=factories.FOR_ADA),
                "needs": ["review"],
            },
        },
    )
    factories.ada()
    run = flows.ran(job)
    return Request.objects.get(run=run, status=Request.Status.PENDING)


@pytest.mark.parametrize(
    ("response", "seen", "status"),
    [
        ({"approved": True}, False, 422),
        ({"approved": True}, True, 200),
        ({"approved": False, "note": "no"}, False, 200),
    ],
)
def test_a_program_has_to_say_that_it_read_them(
    response: dict[str, Any], seen: bool, status: int
) -> None:
    row = asked_by_a_flow()
    ada = person(factories.ada())

    sent = {"digest": row.digest, "response": response, "seen": seen}
    told = ada.post(f"/requests/{row.pk}/submit", sent)

    assert told.status_code == status
    if status == 422:
        error = told.json()["error"]
        assert (error["code"], error["field"]) == ("invalid", "seen")
        assert "No test for zero." in error["message"]
        assert not row.responses.exists()
        row.refresh_from_db()
        assert row.status == Request.Status.PENDING


def test_the_page_of_such_a_question_takes_the_tick() -> None:
    row = asked_by_a_flow()
    services.claim(row.pk, principal=factories.ada())

    assert answer(row, "true").status_code == 422
    answer(row, "true", seen_findings="on")

    assert row.responses.get().response == {"approved": True}
