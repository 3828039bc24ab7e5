"""The questions of a step on one form: without scripts, and with the keyboard alone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gates.models import Request
from runs.kernel.questions import Question, question_request, read_questions
from tests.browser.asking import Bot
from tests.browser.conftest import Visit

QUESTIONS = [
    Question("Which colour?", key="colour", options=["red", "blue"]),
    Question("Which paper?", key="paper", options=["matt", "gloss"], allow_other=True),
    Question("Which sizes?", key="sizes", options=["S", "M"], multiple=True, allow_other=True),
    Question("Anything else?", key="more", required=False),
]


@pytest.fixture
def asked(bot: Bot) -> Request:
    """A form as the step `order` puts it."""
    parts = [one for one in read_questions(QUESTIONS) if one is not None]
    request = question_request(("print", "order"), 1, parts)
    schema: Any = request.to_wire()["responseSchema"]
    return bot.ask(request.decision_text, gate=request.gate_id, schema=schema, about={})


def opened(asked: Request, visit: Visit, **options: Any) -> Page:
    page = visit("ada", **options)
    page.goto(asked.get_absolute_url())
    return page


def test_all_questions_are_answered_without_scripts(asked: Request, visit: Visit) -> None:
    page = opened(asked, visit, java_script_enabled=False)
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_role("group", name="Which colour?").get_by_label("blue").check()
    page.get_by_label("What else, for Which sizes?").fill("XL")
    page.get_by_role("button", name="Record the answer").click()

    expect(page.get_by_role("alert")).to_contain_text("The answer was not recorded")
    expect(page.locator(".field[data-invalid]")).to_have_count(1)
    expect(page.locator("#id_f-paper_error")).to_have_text("This is required.")
    expect(page.get_by_label("What else, for Which sizes?")).to_have_value("XL")
    paper = page.get_by_role("group", name="Which paper?")
    paper.get_by_label("Other", exact=True).check()
    page.get_by_label("What else, for Which paper?").fill("vellum")
    page.get_by_role("group", name="Which sizes?").get_by_label("M", exact=True).check()
    page.get_by_role("button", name="Record the answer").click()

    expect(page.locator(".receipt")).to_be_visible()
    assert asked.responses.get().response == {
        "colour": "blue",
        "paper": "vellum",
        "sizes": ["M", "XL"],
    }


def test_the_form_fits_a_phone(asked: Request, visit: Visit) -> None:
    page = opened(asked, visit, size="phone")
    page.get_by_role("button", name="Claim and answer").click()
    assert page.viewport_size is not None

    for name in ("Which paper?", "Which sizes?"):
        group = page.get_by_role("group", name=name).bounding_box()
        text = page.get_by_label(f"What else, for {name}").bounding_box()
        assert group is not None
        assert text is not None
        assert text["x"] + text["width"] <= group["x"] + group["width"]
        assert group["x"] + group["width"] <= page.viewport_size["width"]


def test_all_questions_are_answered_by_keys(asked: Request, visit: Visit) -> None:
    page = opened(asked, visit)
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Record the answer")).to_be_enabled()
    page.get_by_role("group", name="Which colour?").get_by_label("red").focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("blue")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type("jny vellum")
    paper = page.get_by_role("group", name="Which paper?")
    expect(paper.get_by_label("Other", exact=True)).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    # A button that took another's place rests for a moment, so that no double click presses it.
    expect(page.get_by_role("button", name="Record the answer")).to_be_enabled()
    page.keyboard.press("Control+Enter")

    expect(page.locator(".receipt")).to_be_focused()
    assert asked.responses.get().response == {
        "colour": "blue",
        "paper": "jny vellum",
        "sizes": ["S"],
    }
