"""A question passes from hand to hand, needs two people, and is answered over their heads."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from gates.models import Request
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.test_axe import findings
from tests.factories import user

TEAM = {"groups": ["Release"]}
SHOTS = os.environ.get("OBVERSA_TEST_SHOTS", "")


def shot(page: Page, name: str) -> None:
    """A picture for people to look at, where somebody asked for them."""
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True, caret="initial")


def member(name: str) -> str:
    user(name, groups=["Release"], first_name=name.capitalize())
    return name


def fits(page: Page) -> None:
    """Nothing has to be scrolled sideways, and axe has nothing to say."""
    assert findings(page) == []
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("phone", "dark")])
def test_two_people_in_two_browsers_answer_one_question(
    bot: Bot, visit: Visit, size: str, theme: str
) -> None:
    ada, eve = (visit(member(name), size=size, theme=theme) for name in ("ada", "eve"))
    question = bot.ask("Ship 2.4.0?", audience=TEAM, needed=2)
    for page in (ada, eve):
        page.goto(question.get_absolute_url())
    expect(ada.locator(".gate-state")).to_contain_text("0 of 2")
    expect(ada.locator(".who")).to_contain_text("2 distinct people have to answer")
    shot(ada, f"quorum-open-{size}-{theme}")

    ada.get_by_label("Note").fill("The changelog reads well.")
    ada.get_by_role("button", name="Approve").click()

    expect(ada.locator(".decision")).to_have_attribute("data-mode", "answered")
    expect(ada.locator(".decision")).to_contain_text("waits for one more person")
    expect(ada.locator(".gate-state")).to_contain_text("1 of 2")
    expect(ada.locator(".who")).to_contain_text("May still answer: Eve")
    fits(ada)
    shot(ada, f"quorum-mine-{size}-{theme}")
    eve.reload()
    expect(eve.locator(".who")).to_contain_text("1 of 2 answered")
    expect(eve.locator(".who .voices")).to_contain_text("The changelog reads well.")
    fits(eve)
    shot(eve, f"quorum-half-{size}-{theme}")

    eve.get_by_role("button", name="Approve").click()

    expect(eve.locator(".receipt")).to_contain_text("Approved")
    expect(eve.locator(".receipt .voices li")).to_have_count(2)
    shot(eve, f"quorum-done-{size}-{theme}")
    question.refresh_from_db()
    assert (question.status, question.responses.count()) == ("answered", 2)


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_the_holder_hands_a_question_on(bot: Bot, visit: Visit, size: str) -> None:
    ada, eve = (visit(member(name), size=size) for name in ("ada", "eve"))
    question = bot.ask("Ship 2.4.0?", audience=TEAM)
    ada.goto(question.get_absolute_url())
    ada.get_by_role("button", name="Claim and answer").click()
    ada.get_by_text("Hand it on").click()
    ada.get_by_label("Person").fill("mallory")
    ada.get_by_role("button", name="Hand on").click()
    expect(ada.get_by_role("alert")).to_contain_text("may answer this question")

    # The form stays open, with what was typed.
    expect(ada.get_by_label("Person")).to_have_value("mallory")
    fits(ada)
    shot(ada, f"delegate-form-{size}")
    ada.get_by_label("Person").fill("eve")
    ada.get_by_label("Reason").fill("You wrote it.")
    ada.get_by_role("button", name="Hand on").click()

    expect(ada.locator(".decision")).to_have_attribute("data-mode", "held")
    expect(ada.locator(".timeline")).to_contain_text("handed on")
    expect(ada.locator(".timeline")).to_contain_text("to Eve: You wrote it.")
    shot(ada, f"delegate-done-{size}")
    eve.goto("/?tab=mine")
    eve.get_by_role("link", name="Ship 2.4.0?").click()
    eve.get_by_role("button", name="Approve").click()
    expect(eve.locator(".receipt")).to_contain_text("Approved")


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("phone", "dark")])
def test_breaking_the_glass_is_an_act_of_its_own_and_leaves_a_mark(
    bot: Bot, visit: Visit, size: str, theme: str
) -> None:
    rex = user(
        "rex",
        first_name="Rex",
        perms=["gates.view_request", "runs.view_run", "gates.break_glass"],
    )
    page = visit(rex, size=size, theme=theme)
    question = bot.ask("Ship 2.4.0?", audience=TEAM, needed=2)
    page.goto(question.get_absolute_url())
    shot(page, f"glass-link-{size}-{theme}")
    page.get_by_role("link", name="Break the glass").click()
    yes = page.get_by_role("button", name="I say yes in place of those who were asked")
    fits(page)
    shot(page, f"glass-form-{size}-{theme}")
    yes.click()
    expect(page.get_by_role("alert")).to_contain_text("Say why")

    page.get_by_label("Why it cannot wait").fill("The site is down and both are on a plane.")
    yes.click()

    expect(page.locator(".glass-mark")).to_contain_text("Rex answered in place of those")
    expect(page.locator(".glass-mark")).to_contain_text("The site is down")
    expect(page.locator(".timeline")).to_contain_text("glass broken")
    fits(page)
    shot(page, f"glass-receipt-{size}-{theme}")
    page.goto(f"/runs/{question.run_id}/")
    expect(page.locator(".run-facts .glass-mark")).to_be_visible()
    fits(page)
    shot(page, f"glass-run-{size}-{theme}")
    page.goto("/runs/")
    expect(page.locator(".glass-tag")).to_have_count(1)
    fits(page)
    shot(page, f"glass-runs-{size}-{theme}")
    question = Request.objects.select_related("run").get(pk=question.pk)
    assert (question.how, question.run.overridden) == ("overridden", True)


def test_a_deputy_is_named_on_ones_own_page_and_answers_without_scripts(
    bot: Bot, visit: Visit
) -> None:
    user("dan", first_name="Dan")
    member("ada")
    ada = visit("ada", java_script_enabled=False)
    dan = visit("dan", java_script_enabled=False)
    question = bot.ask("Ship 2.4.0?", audience=TEAM)
    assert dan.goto(question.get_absolute_url()).status == 404  # type: ignore[union-attr]  # it answers

    ada.goto("/settings/")
    ada.get_by_label("Deputy").fill("dan")
    ada.get_by_label("Up to and including").fill("2000-01-01")
    ada.get_by_role("button", name="Name a deputy").click()
    expect(ada.locator("form", has=ada.get_by_label("Deputy"))).to_contain_text("in the next 90")
    shot(ada, "deputy-refused")
    ada.get_by_label("Up to and including").fill(_in_a_week())
    ada.get_by_role("button", name="Name a deputy").click()
    expect(ada.get_by_text("Dan answers for you until")).to_be_visible()
    shot(ada, "deputy-named")

    dan.goto(question.get_absolute_url())
    dan.get_by_role("button", name="Claim and answer").click()
    expect(dan.locator(".decision")).to_contain_text("in the place of Ada")
    shot(dan, "deputy-answers")
    dan.get_by_role("button", name="Approve").click()
    expect(dan.locator(".receipt")).to_contain_text("for Ada")
    shot(dan, "deputy-receipt")

    ada.goto("/settings/")
    ada.get_by_role("button", name="I am back").click()
    expect(ada.get_by_text("Dan answers for you")).to_have_count(0)


def _in_a_week() -> str:
    return f"{timezone.now() + timedelta(days=7):%Y-%m-%d}"
