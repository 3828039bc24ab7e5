"""Two people, two tabs, a rescue: one wins, the other is told, and nothing typed is lost."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from gates.models import Request
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import operator, user

BOTH = {"users": ["ada", "eve"]}


def claim(page: Page) -> None:
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_label("Note")).to_be_visible()


def test_of_two_people_who_claim_one_wins_and_the_other_reads_who(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?", audience=BOTH)
    ada, eve = visit("ada"), visit("eve")
    for page in (ada, eve):
        page.goto(question.get_absolute_url())

    claim(ada)
    eve.get_by_role("button", name="Claim and answer").click()

    expect(eve.get_by_role("alert")).to_contain_text("ada")
    expect(eve.locator(".decision")).to_have_attribute("data-mode", "held")
    question.refresh_from_db()
    assert question.holder.startswith("user:")


def test_the_open_page_of_the_other_person_changes_by_itself(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?", audience=BOTH)
    ada, eve = visit("ada"), visit("eve")
    for page in (ada, eve):
        page.goto(question.get_absolute_url())
    expect(eve.locator("#live")).to_have_attribute("data-live", "live")

    claim(ada)
    expect(eve.locator(f"#row-{question.pk} .claim")).to_contain_text("ada")
    expect(eve.locator(".banner")).to_contain_text("ada claimed this question")
    expect(eve.locator(".timeline")).to_contain_text("claimed")
    ada.get_by_role("button", name="Release the claim").click()
    expect(eve.locator(".banner")).to_contain_text("free again")
    expect(ada.locator(".banner")).to_have_count(0)
    claim(ada)
    ada.get_by_role("button", name="Approve").click()

    expect(eve.locator(".banner")).to_contain_text("ada answered this question")
    expect(eve.locator(f"#row-{question.pk} .claim")).to_contain_text("approved")


def test_a_second_tab_shows_the_answer_of_the_first_and_keeps_its_note(
    bot: Bot, visit: Visit
) -> None:
    question = bot.ask("Ship it?")
    first = visit("ada")
    first.goto(question.get_absolute_url())
    claim(first)
    second = first.context.new_page()
    second.goto(question.get_absolute_url())
    second.get_by_label("Note").fill("Written in the second tab")
    first.get_by_role("button", name="Refuse").click()
    expect(first.locator(".receipt")).to_be_visible()

    second.get_by_role("button", name="Approve").click()

    alert = second.get_by_role("alert").filter(has_text="answered first")
    expect(alert).to_contain_text("refused")
    expect(alert).to_contain_text("Written in the second tab")
    expect(second.locator(".receipt")).to_contain_text("Refused")
    assert question.responses.count() == 1


def test_a_tab_of_the_question_before_cannot_answer_the_new_one(bot: Bot, visit: Visit) -> None:
    old = bot.ask("Ship abc?", gate="ship", about={"revision": "abc"})
    page = visit("ada")
    page.goto(old.get_absolute_url())
    claim(page)
    new = bot.ask("Ship def?", gate="ship", about={"revision": "def"})

    page.get_by_role("button", name="Approve").click()

    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".receipt")).to_have_count(0)
    new.refresh_from_db()
    assert new.status == Request.Status.PENDING
    assert not old.responses.exists()
    page.reload()
    page.get_by_role("link", name="Open the newer question").click()
    expect(page.locator(".question")).to_contain_text("Ship def?")


def test_a_claim_taken_away_under_typing_keeps_the_text(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    ada, oda = visit("ada"), visit(operator().user)
    ada.goto(question.get_absolute_url())
    claim(ada)
    ada.get_by_label("Note").fill("Half a sentence")
    expect(ada.locator("#live")).to_have_attribute("data-live", "live")

    oda.goto(question.get_absolute_url())
    oda.get_by_text("Release it for ada").click()
    oda.locator(f"#force-{question.pk}").fill("Ada is on leave")
    oda.get_by_role("button", name="Force release").click()
    expect(oda.locator(".timeline")).to_contain_text("claim taken away")

    expect(ada.locator(".banner")).to_contain_text("took the claim back: Ada is on leave")
    expect(ada.get_by_label("Note")).to_have_value("Half a sentence")
    ada.get_by_role("button", name="Approve").click()
    expect(ada.get_by_role("alert").filter(has_text="What you wrote")).to_contain_text(
        "Half a sentence"
    )
    assert not question.responses.exists()


def test_a_double_click_claims_once_and_answers_nothing(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())

    page.get_by_role("button", name="Claim and answer").dblclick()

    expect(page.get_by_label("Note")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    expect(page.locator(".receipt")).to_have_count(0)
    page.get_by_role("button", name="Approve").dblclick()
    expect(page.locator(".receipt")).to_be_visible()
    kinds = list(question.run.events.values_list("kind", flat=True))
    assert kinds.count("callback-claimed") == 1
    assert kinds.count("callback-submitted") == 1


def test_going_back_after_the_answer_shows_the_answer(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    claim(page)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".receipt")).to_be_visible()
    page.goto("/runs/")

    page.go_back()

    expect(page.locator(".receipt")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_the_open_page_of_somebody_who_may_only_look_changes_by_itself(
    bot: Bot, visit: Visit
) -> None:
    question = bot.ask("Ship it?")
    ada, ben = visit("ada"), visit(user("ben", perms=["runs.view_run", "gates.view_request"]))
    for page in (ada, ben):
        page.goto(question.get_absolute_url())
    expect(ben.locator("#live")).to_have_attribute("data-live", "live")

    claim(ada)
    expect(ben.locator(".banner")).to_contain_text("ada claimed this question")
    ada.get_by_role("button", name="Approve").click()

    expect(ben.locator(".banner")).to_contain_text("ada answered this question")
    expect(ben.locator(".timeline")).to_contain_text("answered")
