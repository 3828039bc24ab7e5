"""The reply to an answer is lost on its way: nobody claims to know what became of it."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from gates.models import Response
from tests.browser.asking import Bot
from tests.browser.conftest import Visit


def test_an_answer_whose_reply_was_lost_is_sent_again_and_counts_once(
    bot: Bot, visit: Visit
) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_label("Note").fill("once")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/answer/", lose, times=1)
    yes = page.locator("button[data-verdict=yes]")
    yes.click()
    expect(page.locator(".toast")).to_contain_text("not known whether this was recorded")
    expect(page.get_by_label("Note")).to_have_value("once")

    yes.click()
    expect(page.locator(".receipt")).to_be_visible()
    expect(page.locator(".conflict")).to_have_count(0)
    assert [one.response for one in Response.objects.filter(request=question)] == [
        {"approved": True, "note": "once"}
    ]
