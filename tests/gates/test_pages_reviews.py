"""The page of a review: the change, the comments on its lines, and the two verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from gates import services
from gates.models import Request
from gates.reviews import diffs
from runs import human_review, pipeline
from runs.kernel.interactions import Interaction, wrapped_schema
from tests import factories, flows
from tests.gates.reviewing import (
    WITH_CHANGES,
    asked,
    holding,
    open_question,
    press,
    response,
    said,
    submit,
)
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db


def shown(row: Request, query: str = "") -> Page:
    return page_of(client_of(factories.ada()).get(row.get_absolute_url() + query))


def texts(page: Page, **wanted: str) -> list[str]:
    return [one.text for one in page.all(**wanted)]


def kept(row: Request) -> Any:
    return row.responses.get().response


def faults(answer: Any) -> str:
    assert answer.status_code == 422
    return page_of(answer).one(class_="form-errors").text


def with_form(schema: Any, material: Any = None) -> Request:
    job = human_review(
        "review",
        "Ready?",
        input={"draft": "words"} if material is None else material,
        interaction=Interaction("desk", schema),
        audience=factories.FOR_ADA,
    )
    return open_question(flows.ran(pipeline("desk", [{"name": "review", "job": job}])))


def test_the_change_is_shown_file_by_file_and_line_by_line() -> None:
    _, row = asked()
    page = shown(row)

    assert texts(page, tag="h4", class_="diff-path") == ["b.md", "src/a.py"]
    assert [one.text for one in page.all(class_="diff-base")] == ["b.md", "a.py"]
    lines = [one.text for one in page.all("td", class_="diff-text")]
    assert lines == [
        "added: b",
        "one",
        "removed: two",
        "added: zwei",
        "three",
        "added: four",
    ]
    assert page.one(class_="diff-sums").text == "2 files +3 \N{MINUS SIGN}1"


def test_both_sides_stand_beside_each_other_where_that_is_asked_for() -> None:
    _, row = asked()
    page = shown(row, "?view=split")

    assert {one.get("data-view") for one in page.all("table")} == {"split"}
    lines = [one.text for one in page.all("td", class_="diff-text")]
    assert lines[2:6] == ["one", "one", "removed: two", "added: zwei"]


def test_the_change_is_not_told_twice() -> None:
    _, row = asked()
    page = shown(row)

    assert "zwei" not in page.by_id(f"gate-{row.pk}-summary").text
    assert "identity" not in page.by_id(f"gate-{row.pk}-summary").text


def test_hostile_text_in_a_change_is_text() -> None:
    evil = '<script>alert("x")</script>'
    path = f'a"><img src=x onerror=alert(1)>/{evil}.py'
    _, row = asked(material={"changes": {path: {"old": "", "new": f"{evil}\n\u202egnp.exe\n"}}})
    client = client_of(factories.ada())
    html = client.get(row.get_absolute_url()).content.decode()

    assert evil not in html
    assert "<img" not in html
    assert "<U+202E>" not in html
    assert "&lt;U+202E&gt;" in html


def test_the_verdicts_are_two_equal_verbs() -> None:
    _, row = asked()
    holding(row)
    page = shown(row)

    pressed = [one for one in page.all("button") if one.get("data-verdict")]
    assert [(one.text, one.get("name"), one.get("value")) for one in pressed] == [
        ("Approve", "f-decision", "approved"),
        ("Request changes", "f-decision", "changes-requested"),
    ]
    assert "another round" in page.one(class_="outcomes").text


def test_comments_of_lines_become_annotations_and_the_prompt_is_composed_of_them() -> None:
    _, row = asked()
    answer = press(
        holding(row),
        row,
        "changes-requested",
        {"f-prompt": "Not yet."},
        comments=[said("In English."), said("Was better.", side="old")],
        hx=True,
    )

    assert answer.status_code == 200
    assert kept(row)["decision"] == "changes-requested"
    assert kept(row)["prompt"] == (
        "Not yet.\n\nsrc/a.py:2: In English.\n\nsrc/a.py:2 (before the change): Was better."
    )
    first, second = kept(row)["feedback"]["annotations"]
    assert first["anchor"] == {"target": "src/a.py", "side": "new", "position": 2}
    assert second["anchor"]["side"] == "old"
    assert {one["author"]["id"] for one in (first, second)} == {"ada"}
    page = page_of(answer)
    assert page.one(class_="receipt-decision").text == "Changes requested"
    assert f"#gate-{row.pk}-diff" in page.targets


def test_the_box_of_a_file_takes_comments_without_scripts() -> None:
    _, row = asked()
    press(
        holding(row),
        row,
        "changes-requested",
        {"f-file-1": "Unclear.\n2: In English.\n\n-2: Was better.\n", "f-file-0": " "},
    )

    listed = kept(row)["feedback"]["annotations"]
    assert [(one["anchor"]["side"], one["anchor"]["position"], one["body"]) for one in listed] == [
        ("old", 2, "Unclear."),
        ("new", 2, "In English."),
        ("old", 2, "Was better."),
    ]


def test_a_line_that_is_not_there_is_told_and_what_was_typed_stays() -> None:
    _, row = asked()
    client = holding(row)
    answer = press(client, row, "changes-requested", {"f-file-1": "99: Why?"})

    assert "src/a.py has no line 99" in faults(answer)
    page = page_of(answer)
    assert page.by_id(f"gate-{row.pk}-box-1").text == "99: Why?"
    assert not row.responses.exists()


@pytest.mark.parametrize(
    ("decision", "comments", "words"),
    [
        ("approved", [said()], "An approval holds no comments"),
        ("changes-requested", [], "Say on at least one line"),
        ("changes-requested", [said(position=99)], "Say on at least one line"),
        (None, [], "Choose Approve or Request changes"),
        ("yes", [said()], "Choose Approve or Request changes"),
    ],
)
def test_what_does_not_go_together_is_refused_and_the_page_stays_open(
    decision: str | None, comments: list[Any], words: str
) -> None:
    _, row = asked()
    assert words in faults(press(holding(row), row, decision, comments=comments, hx=True))
    row.refresh_from_db()
    assert row.status == Request.Status.CLAIMED


@pytest.mark.parametrize("sent", ["{", "[" * 100_000, '{"a": 1}', "3"])
def test_comments_that_cannot_be_read_are_refused(sent: str) -> None:
    _, row = asked()
    answer = press(holding(row), row, "changes-requested", {"f-comments": sent})
    assert "could not be read" in faults(answer)


def test_an_approval_needs_no_words() -> None:
    _, row = asked()
    press(holding(row), row, "approved")
    assert kept(row) == {"feedback": {"annotations": []}, "prompt": "", "decision": "approved"}


def test_what_was_said_stands_below_its_line() -> None:
    _, row = asked()
    submit(row, response(said("In <b>English</b>.")))
    page = shown(row)

    assert page.one(class_="diff-comment").text == "ada In <b>English</b>."
    assert not page.all("textarea")
    assert not page.all(class_="diff-box")


def test_the_next_round_shows_what_the_last_one_was_sent_back_with() -> None:
    run, row = asked()
    assert not shown(row).all(class_="wanted")
    submit(row, response(said("In <i>English</i>.")))
    flows.work(run)
    again = open_question(run)

    assert (
        shown(again)
        .one("section", class_="wanted")
        .text.endswith("src/a.py:2 In <i>English</i>. ada")
    )


def test_whoever_does_not_hold_the_question_is_shown_no_form() -> None:
    _, row = asked()
    services.claim(row.pk, principal=factories.ada())
    page = page_of(client_of(factories.ben()).get(row.get_absolute_url()))
    assert not page.all("form", class_="answer")


def test_many_files_come_one_by_one() -> None:
    changes = {f"f{n:03}.txt": {"old": "a\n", "new": "b\n"} for n in range(60)}
    _, row = asked(material={"changes": changes})
    page = shown(row)

    waiting = [one for one in page.all("section", class_="diff-file") if one.get("hx-get")]
    assert len(page.all("section", class_="diff-file")) == 60
    assert len(waiting) == 60 - diffs.FIRST_FILES
    assert len([one for one in page.all("a") if one.get("data-to-file")]) == 60
    client = client_of(factories.ada())
    file = page_of(client.get(waiting[0].attributes["hx-get"]))
    assert file.one(class_="diff-path").text == f"f{diffs.FIRST_FILES:03}.txt"
    assert [one.text for one in file.all("td", class_="diff-text")] == ["removed: a", "added: b"]


def test_without_scripts_a_later_file_is_shown_by_its_link() -> None:
    changes = {f"f{n:03}.txt": {"old": "a\n", "new": "b\n"} for n in range(60)}
    _, row = asked(material={"changes": changes})
    page = shown(row, "?file=55")
    assert texts(page, tag="h4", class_="diff-path") == [f"f{n:03}.txt" for n in range(55, 60)]
    assert len(page.all("tr", class_="diff-row")) == 10


def test_a_long_file_waits_until_somebody_asks_for_it() -> None:
    long = "".join(f"{n}\n" for n in range(diffs.LONG_FILE + 1))
    _, row = asked(material={"changes": {"a.txt": {"old": None, "new": long}}})
    assert not shown(row).all("tr", class_="diff-row")
    page = shown(row, "?file=0")
    assert len(page.all("tr", class_="diff-row")) == diffs.LONG_FILE + 1


@pytest.mark.parametrize("query", ["?file=x", "?file=-1", "?file=999999999", "?view=<b>", "?file="])
def test_an_odd_address_shows_the_page(query: str) -> None:
    _, row = asked()
    assert client_of(factories.ada()).get(row.get_absolute_url() + query).status_code == 200


def test_a_file_is_shown_to_whoever_may_see_its_question_alone() -> None:
    row = factories.external_request(
        input=WITH_CHANGES, presentation={"diff": "/changes"}, audience=factories.FOR_ADA
    )
    address = reverse("gates:diff-file", args=[row.pk, 1])

    assert client_of(factories.ada()).get(address).status_code == 200
    assert client_of(factories.ben()).get(address).status_code == 200
    assert client_of(factories.cyd()).get(address).status_code == 404
    assert client_of(factories.ada()).get(address.replace("/1/", "/2/")).status_code == 404
    assert Client().get(address).status_code == 302
    other = reverse("gates:diff-file", args=[factories.external_request().pk, 0])
    assert client_of(factories.ada()).get(other).status_code == 404


def test_a_masked_change_is_not_shown_by_the_side_door() -> None:
    row = factories.external_request(
        input={"changes": WITH_CHANGES["changes"]},
        presentation={"diff": "/changes", "sensitive": ["/changes"]},
    )
    page = shown(row)
    assert not page.all(class_="diff-file")
    address = reverse("gates:diff-file", args=[row.pk, 1])
    assert client_of(factories.ada()).get(address).status_code == 404


def test_any_question_may_show_a_change() -> None:
    row = factories.external_request(
        input={"diff": "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-x\n+y\n"},
        presentation={"diff": "/diff"},
    )
    page = shown(row)
    assert texts(page, tag="td", class_="diff-text") == ["removed: x", "added: y"]
    assert not page.all("input", name="f-comments")


def test_the_form_of_an_application_is_asked_field_by_field() -> None:
    row = with_form(
        {
            "properties": {
                "feedback": {
                    "type": "object",
                    "properties": {
                        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
                        "tone": {"enum": ["calm", "loud"]},
                    },
                    "required": ["stars"],
                },
                "channel": {"type": "string"},
            },
        }
    )
    client = holding(row)
    page = shown(row)
    asked_for = ["Stars", "Tone", "Channel", "Note"]
    labels = [one.text.split()[0] for one in page.all(class_="label")]
    assert [one for one in labels if one in asked_for] == asked_for

    sent = {"f-field-0": "9", "f-field-1": "calm", "f-channel": "web"}
    wrong = press(client, row, "approved", sent)
    assert "Stars" in faults(wrong)
    press(client, row, "approved", {**sent, "f-field-0": "4"})
    assert kept(row) == {
        "feedback": {"stars": 4, "tone": "calm"},
        "channel": "web",
        "prompt": "",
        "decision": "approved",
    }


def test_changes_to_work_without_a_change_need_words() -> None:
    row = with_form({})
    client = holding(row)
    assert "Say what has to change" in faults(press(client, row, "changes-requested"))
    press(client, row, "changes-requested", {"f-prompt": "Shorter."})
    assert kept(row) == {"feedback": {}, "prompt": "Shorter.", "decision": "changes-requested"}


def test_feedback_that_is_no_object_is_one_field() -> None:
    row = with_form({"properties": {"feedback": {"type": "string", "title": "Your headline"}}})
    press(holding(row), row, "approved", {"f-feedback": "News"})
    assert kept(row)["feedback"] == "News"


def test_the_rules_of_an_application_bind_beside_the_decision() -> None:
    row = with_form(
        {
            "properties": {
                "prompt": {"type": "string", "enum": ["ship", "mend"]},
                "channel": {"type": "string"},
                "reason": {"type": "string"},
            },
            "anyOf": [{"required": ["channel"]}, {"required": ["reason"]}],
        }
    )
    client = holding(row)
    assert press(client, row, "approved", {"f-prompt": "ship"}).status_code == 422
    assert press(client, row, "approved", {"f-channel": "web"}).status_code == 422
    press(client, row, "approved", {"f-prompt": "ship", "f-channel": "web"})
    assert kept(row)["prompt"] == "ship"


def test_a_question_that_a_model_wrote_says_so() -> None:
    row = factories.external_request(
        schema=wrapped_schema({}, review=False),
        input={
            "requester": {"path": ["w"], "identity": "0" * 64, "engine": "mock", "model": "m-1"},
            "material": {"topic": "tone"},
            "previousFeedback": [{"feedback": {}, "prompt": "Calm."}],
        },
    )
    summary = shown(row).by_id(f"gate-{row.pk}-summary").text
    assert "topic tone" in summary
    assert "written by the model mock m-1" in summary
    assert "answered before Calm." in summary
    assert "identity" not in summary
