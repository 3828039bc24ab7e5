"""Everything a person does to questions, with the keyboard alone."""

from __future__ import annotations

from playwright.sync_api import expect

from gates.models import Request
from tests.browser.asking import Bot
from tests.browser.conftest import Visit


def test_a_question_is_found_claimed_and_answered_by_keys(bot: Bot, visit: Visit) -> None:
    first, second = bot.ask("Ship the first?"), bot.ask("Ship the second?")
    page = visit("ada")
    page.goto("/")

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(f"#row-{second.pk}-link")).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator(f"#row-{first.pk}-link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(f"#gate-{first.pk}")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("group", name="Your answer")).to_be_focused()
    yes = page.get_by_role("button", name="Approve")
    expect(yes).to_be_enabled()
    page.keyboard.press("n")
    expect(page.get_by_role("button", name="Refuse")).to_be_focused()
    page.keyboard.press("y")
    expect(yes).to_be_focused()
    expect(page.locator(".receipt")).to_have_count(0)
    page.keyboard.press("Enter")

    receipt = page.locator(".receipt")
    expect(receipt).to_contain_text("Approved")
    expect(receipt).to_be_focused()
    first.refresh_from_db()
    assert first.status == Request.Status.ANSWERED
    page.get_by_role("link", name="Next question").press("Enter")
    expect(page.locator(f"#gate-{second.pk}")).to_be_visible()


def test_a_note_is_written_and_left_by_keys(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    page.keyboard.press("c")
    expect(page.get_by_role("group", name="Your answer")).to_be_focused()
    expect(page.get_by_role("button", name="Refuse")).to_be_enabled()

    page.keyboard.press("Tab")
    page.keyboard.type("yn jk: keys are text in here")
    expect(page.get_by_label("Note")).to_have_value("yn jk: keys are text in here")
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator(".receipt")).to_contain_text("keys are text in here")
    assert question.responses.get().response["approved"] is False


def test_a_claim_is_given_back_and_a_list_is_searched_by_keys(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    bot.ask("Something else?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    page.keyboard.press("c")
    expect(page.get_by_text("yours to answer")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_role("button", name="Claim and answer")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("ship")
    page.keyboard.press("Enter")

    expect(page.locator("#inbox-list .row")).to_have_count(1)


def test_the_places_and_the_help_are_reached_by_keys(visit: Visit) -> None:
    page = visit("ada")
    page.goto("/")
    for key, heading in (("r", "Runs"), ("w", "Workflows"), ("t", "Teams"), ("i", "Inbox")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_skip_link_comes_first_and_leads_to_the_page(visit: Visit) -> None:
    page = visit("ada")
    page.goto("/runs/")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("#main-content")).to_be_focused()
