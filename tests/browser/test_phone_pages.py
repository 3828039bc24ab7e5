"""A phone: what is decided with stays above the bar, and long names leave the page its width."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from playwright.sync_api import expect

from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import user


def test_the_verdicts_of_a_long_question_stay_above_the_bar(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?", about={f"fact{number}": "x " * 60 for number in range(12)})
    page = visit("ada", size="phone")
    page.goto(question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    verdicts = page.locator("button[data-verdict]")
    expect(verdicts).to_have_count(2)
    page.evaluate("window.scrollTo(0, 0)")

    bar = page.locator("nav.rail").bounding_box()
    assert bar is not None
    for verdict in verdicts.all():
        box = verdict.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= bar["y"]


@pytest.mark.parametrize(
    "name", ["L" * 150, "<img src=x onerror=\"window.hacked='yes'\">\u202egnp.exe"]
)
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_team_with_a_long_name_keeps_the_width_of_its_pages(
    name: str, size: str, visit: Visit
) -> None:
    ada = user("ada", groups=[name], perms=["gates.change_team"])
    team = Group.objects.get(name=name)
    page = visit(ada, size=size)

    for part in ("", "times/", "calendar/"):
        page.goto(f"/teams/{team.pk}/{part}")
        expect(page.locator("h1")).to_be_visible()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0
        assert page.evaluate("typeof window.hacked") == "undefined"
