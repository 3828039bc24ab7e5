"""A team's queue and one answer to several questions, at a desk and on a phone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Page, expect

from gates import services
from gates.models import Request
from gates.principals import Principal
from gates.teams import calendars
from runs.kernel.worktime import Calendar
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import user

RELEASE = {"groups": ["Release"]}


def queue(bot: Bot) -> list[Request]:
    """Five questions of the team, one of them held by somebody else, one late."""
    kim = user("kim", groups=["Release"], first_name="Kim", last_name="Okafor")
    late = (timezone.now() - timedelta(hours=2)).isoformat()
    asked = [
        bot.ask(
            f"Deploy build {410 + number} to production?",
            gate="deploy",
            about={"build": 410 + number, "service": "shop", "region": region},
            audience=RELEASE,
            stream=f"deploys-{number}",
            dueAt=late if number == 2 else None,
        )
        for number, region in enumerate(["eu", "eu", "us", "us"])
    ]
    asked.append(bot.ask("Which channel?", gate="channel", audience=RELEASE, stream="news"))
    services.claim(asked[3].pk, principal=Principal.for_user(kim, "browser"))
    calendars.set_calendar(Group.objects.get(name="Release"), Calendar(zone="Europe/Berlin"))
    return asked


def team_url() -> str:
    return f"/teams/{Group.objects.get(name='Release').pk}/"


def fits(page: Page) -> bool:
    """Nothing is wider than the window."""
    wide: Any = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    return bool(wide)


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_queue_is_narrowed_saved_and_answered_together(bot: Bot, visit: Visit, size: str) -> None:
    user("ada", groups=["Release"])
    asked = queue(bot)
    ada = visit("ada", size=size)
    ada.goto(team_url())

    rows = ada.locator("#team-queue .queue-row")
    expect(rows).to_have_count(5)
    expect(rows.first).to_contain_text("build 412")
    expect(rows.last).to_contain_text("Kim Okafor")
    assert fits(ada)

    # A filter with a name, found again.
    ada.locator(".narrow-fold summary").click()
    ada.get_by_label("Held").select_option("free")
    ada.get_by_label("Words").fill("build")
    ada.get_by_role("button", name="Apply").click()
    expect(rows).to_have_count(3)
    assert fits(ada)
    ada.locator(".narrow-fold summary").click()
    ada.get_by_label("Save this filter as").fill("free builds")
    ada.get_by_role("button", name="Save").click()
    ada.goto(team_url())
    ada.get_by_role("link", name="free builds").click()
    expect(rows).to_have_count(3)

    # One answer for those that are alike.
    for row in asked[:3]:
        ada.locator(f"#queue-{row.pk} input[name=pick]").check()
    ada.get_by_role("button", name="Answer the selected together").click()
    expect(ada.locator(".bulk-item")).to_have_count(3)
    expect(ada.locator(".bulk-item").nth(2)).to_contain_text("/build")
    assert fits(ada)
    ada.get_by_label("note").fill("all checked")
    ada.get_by_role("button", name="Approve, all selected").click()
    expect(ada.get_by_role("heading", name="3 of 3 answered")).to_be_visible()
    assert fits(ada)
    assert {Request.objects.get(pk=row.pk).status for row in asked[:3]} == {"answered"}

    ada.get_by_role("link", name="Back to the list").click()
    expect(rows).to_have_count(2)


def test_a_queue_shows_what_others_do_meanwhile(bot: Bot, visit: Visit) -> None:
    user("ada", groups=["Release"])
    asked = queue(bot)
    ada, kim = visit("ada"), visit("kim")
    ada.goto(team_url())
    first, second = (ada.locator(f"#queue-{row.pk}") for row in asked[:2])
    second.locator("input[name=pick]").check()
    expect(ada.locator("#live")).to_have_attribute("data-live", "live")

    kim.goto(asked[0].get_absolute_url())
    kim.get_by_role("button", name="Claim and answer").click()
    expect(first).to_contain_text("Kim Okafor")
    expect(first.locator("input[name=pick]")).to_have_count(0)
    expect(second.locator("input[name=pick]")).to_be_checked()

    kim.get_by_role("button", name="Approve", exact=True).click()
    expect(first).to_contain_text("no longer here")

    bot.ask("Deploy build 500?", gate="deploy-500", audience=RELEASE, stream="more")
    ada.get_by_role("link", name="1 new, show").click()
    expect(ada.get_by_role("link", name="Deploy build 500?")).to_be_visible()
    expect(first).to_have_count(0)


def test_without_scripts_several_are_selected_and_answered_from_the_inbox(
    bot: Bot, visit: Visit
) -> None:
    user("ada", groups=["Release"])
    asked = queue(bot)
    ada = visit("ada", size="phone", java_script_enabled=False)
    ada.goto("/?tab=unclaimed")
    ada.get_by_role("link", name="Select several").click()
    for row in asked[:2]:
        ada.locator(f"#row-{row.pk} input[name=pick]").check()
    ada.get_by_role("button", name="Answer the selected together").click()
    ada.locator(".bulk-item input").nth(1).uncheck()
    ada.get_by_role("button", name="Refuse, all selected").click()

    expect(ada.get_by_role("heading", name="1 of 1 answered")).to_be_visible()
    assert [Request.objects.get(pk=row.pk).status for row in asked[:2]] == ["answered", "pending"]
