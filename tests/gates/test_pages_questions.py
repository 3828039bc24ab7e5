"""The questions of a step on one form: shown, refused field by field, answered, told."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from gates import services
from gates.errors import AnswerRefused
from gates.models import Request
from runs.drivers.context import Context
from runs.kernel.questions import Question
from runs.models import Run
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from tests import factories, flows
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db

QUESTIONS = [
    Question("Which colour?", key="colour", options=["red", "blue"]),
    Question("Which paper?", key="paper", options=["matt", "gloss"], allow_other=True),
    Question("Which sizes?", key="sizes", options=["S", "M"], multiple=True, allow_other=True),
    Question("Who gets it?", key="who", options=["ada", "ben"], multiple=True, required=False),
    Question("Anything else?", key="else", required=False),
]


def asked(*more: Any, **options: Any) -> tuple[Run, Request]:
    def body(ctx: Context) -> str:
        answers = [ctx.ask_questions(QUESTIONS, **options)]
        answers += [ctx.ask_questions([one]) for one in more]
        return str(answers)

    run = flows.ran(pipeline("print", [{"name": "order", "job": fn_job("order", body)}]))
    return run, Request.objects.get(run=run)


def answer(client: Client, row: Request, *given: tuple[str, str], hx: bool = True) -> Any:
    sent = [("digest", row.digest), *((f"f-{name}", value) for name, value in given)]
    return client.post(
        reverse("gates:answer", args=[row.pk]),
        urlencode(sent),
        content_type="application/x-www-form-urlencoded",
        headers={"HX-Request": "true"} if hx else {},
    )


def claimed(row: Request) -> tuple[Client, Page]:
    client = client_of(factories.operator())
    services.claim(row.pk, principal=factories.operator())
    return client, page_of(client.get(row.get_absolute_url()))


def faults(response: HttpResponse) -> dict[str, str]:
    assert response.status_code == 422
    page = page_of(response)
    found = page.all(class_="field-error")
    return {
        one.attributes["id"].removeprefix("id_f-").removesuffix("_error"): one.text for one in found
    }


GOOD = (("colour", "red"), ("paper", "0"), ("sizes", "0"))
OTHER = (("colour", "blue"), ("paper", "0"), ("sizes", "0"))


def test_the_run_waits_for_a_question_and_holds_no_worker() -> None:
    run, row = asked()

    assert (run.status, run.waiting_on) == (Run.Status.WAITING, ["question"])
    assert run.display_status == "waiting_for_question"
    assert (row.kind, row.status) == (Request.Kind.QUESTION, Request.Status.PENDING)
    assert row.decision_text == "Which colour? (and 4 more)"
    assert [one["key"] for one in row.input["questions"]] == [one.key for one in QUESTIONS]
    assert flows.ready(run) == []


def test_whoever_looks_sees_what_is_asked_before_claiming_it() -> None:
    _, row = asked()
    page = page_of(client_of(factories.operator()).get(row.get_absolute_url()))

    summary = page.by_id(f"gate-{row.pk}-summary").text
    assert all(one.prompt in summary for one in QUESTIONS)


def test_one_form_shows_all_questions_in_their_order() -> None:
    _, row = asked()
    _, page = claimed(row)

    form = page.by_id(f"gate-{row.pk}-answer")
    fields = [
        (one.get("type"), one.get("name"), one.get("value"))
        for one in page.all("input")
        if (one.get("name") or "").startswith("f-")
    ]
    assert fields == [
        ("radio", "f-colour", "red"),
        ("radio", "f-colour", "blue"),
        ("radio", "f-paper", "0"),
        ("radio", "f-paper", "1"),
        ("radio", "f-paper", "other"),
        ("text", "f-paper-other", ""),
        ("checkbox", "f-sizes", "0"),
        ("checkbox", "f-sizes", "1"),
        ("checkbox", "f-sizes", "other"),
        ("text", "f-sizes-other", ""),
        ("checkbox", "f-who", "ada"),
        ("checkbox", "f-who", "ben"),
    ]
    assert page.one("textarea", name="f-else").text == ""
    assert (form.get("method"), form.get("action")) == (
        "post",
        reverse("gates:answer", args=[row.pk]),
    )
    assert {one.get("name") for one in page.all("input") if "checked" in one.attributes} == {
        "theme"
    }
    labels = " / ".join(one.text for one in page.all(class_="label"))
    assert [labels.find(one.prompt) for one in QUESTIONS] == sorted(
        labels.index(one.prompt) for one in QUESTIONS
    )
    other = page.by_id("id_f-paper_other")
    assert other.get("aria-label") == "What else, for Which paper?"


def test_the_questions_are_the_form_and_the_summary_is_what_they_are_about() -> None:
    _, row = asked(about={"order": "A-7"})
    _, page = claimed(row)

    summary = page.by_id(f"gate-{row.pk}-summary")
    assert "A-7" in summary.text
    assert "Which colour?" not in summary.text


def test_each_wrong_answer_stands_at_its_question_and_nothing_is_recorded() -> None:
    _, row = asked()
    client, _ = claimed(row)

    assert faults(answer(client, row)) == {
        "colour": "This is required.",
        "paper": "This is required.",
        "sizes": "This is required.",
    }
    refused = answer(
        client, row,
        ("colour", "green"), ("paper", "other"), ("sizes", "9"), ("who", "eve"),
        ("else", "x" * 10_001),
    )  # fmt: skip
    assert faults(refused) == {
        "colour": "This is not one of the choices.",
        "paper": "Write what else it is.",
        "sizes": "This is not one of the choices.",
        "who": "This is not one of the choices.",
        "else": "This can have at most 10000 characters.",
    }
    assert not row.responses.exists()


def test_what_was_chosen_and_written_stays_on_the_page() -> None:
    _, row = asked()
    client, _ = claimed(row)

    again = page_of(answer(client, row, ("paper", "1"), ("paper-other", "vellum"), ("sizes", "0")))
    checked = {
        (one.get("name"), one.get("value"))
        for one in again.all("input")
        if "checked" in one.attributes and one.get("name") != "theme"
    }
    assert checked == {("f-paper", "1"), ("f-sizes", "0")}
    assert again.by_id("id_f-paper_other").get("value") == "vellum"
    assert "Choose Other" in again.by_id("id_f-paper_error").text


@pytest.mark.parametrize("hx", [True, False])
def test_an_answer_makes_the_step_ready_once_and_comes_back_in_order(*, hx: bool) -> None:
    run, row = asked()
    client, _ = claimed(row)

    response = answer(
        client, row,
        ("else", "no"), ("sizes", "1"), ("sizes", "other"), ("sizes-other", " XL "),
        ("paper-other", "vellum"), ("colour", "blue"),
        hx=hx,
    )  # fmt: skip

    assert response.status_code == (200 if hx else 302)
    assert row.responses.get().response == {
        "colour": "blue",
        "paper": "vellum",
        "sizes": ["M", "XL"],
        "else": "no",
    }
    assert len(flows.ready(run)) == 1
    done = flows.work(run)
    assert done is not None
    assert done.status == Run.Status.PASSED
    ended = flows.events(run, "job:end")[-1].fields["outcome"]
    assert ended["summary"] == "[['blue', 'vellum', ['M', 'XL'], [], 'no']]"


def test_the_receipt_tells_each_question_with_its_answer_and_that_the_run_goes_on() -> None:
    _, row = asked()
    client, _ = claimed(row)

    page = page_of(answer(client, row, *GOOD, ("sizes", "1")))

    told = [one.text for one in page.all("dd")]
    assert told[-5:] == ["red", "matt", "S M", "left out", "left out"]
    assert page.one(class_="receipt-next").get("data-next") == "resumed"


def test_a_second_answer_changes_nothing_and_queues_nothing() -> None:
    run, row = asked()
    client, _ = claimed(row)
    answer(client, row, *GOOD)
    before = flows.kinds(run)

    assert answer(client, row, *GOOD).status_code == 200
    assert answer(client, row, *OTHER).status_code == 409
    assert row.responses.count() == 1
    assert [kind for kind in flows.kinds(run) if kind != "callback-refused"] == before
    assert len(flows.ready(run)) == 1


def test_a_second_form_of_the_step_waits_for_its_own_answer() -> None:
    run, row = asked("Sure?")
    client, _ = claimed(row)
    answer(client, row, *GOOD)
    flows.work(run)

    second = Request.objects.get(run=run, status=Request.Status.PENDING)
    assert second.decision_text == "Sure?"
    services.claim(second.pk, principal=factories.operator())
    answer(client, second, ("answer", "yes"))
    done = flows.work(run)

    assert done is not None
    assert done.status == Run.Status.PASSED
    assert flows.kinds(run).count("job:start") == 3
    assert flows.kinds(run).count("step:ready") == 2


def test_the_api_refuses_a_value_inside_a_list_with_its_field() -> None:
    _, row = asked()
    good = {"colour": "red", "paper": "own", "sizes": ["S"]}

    for name, wrong in [
        ("colour", "green"),
        ("paper", " "),
        ("sizes", []),
        ("sizes", ["S", "S"]),
        ("who", ["eve"]),
        ("unasked", "x"),
    ]:
        with pytest.raises(AnswerRefused) as refused:
            services.submit(
                row.pk,
                principal=factories.operator(),
                token=None,
                digest=row.digest,
                response={**good, name: wrong},
            )
        assert {field for field, _words in refused.value.fields} == {name}
    assert not row.responses.exists()
