"""Notifications of the browser, and the pages that say where somebody is told."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gates.models import Channel, Delivery
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.test_axe import findings
from tests.browser.test_live import is_live
from tests.browser.waiting import until
from tests.factories import user
from tests.gates.notify import ways

# A browser without a desk to show anything on: what it would show is kept in `window.shown`.
RECORDER = """
window.shown = [];
window.Notification = class {
  constructor(title, options) { window.shown.push([title, options.body, options.tag]); }
  addEventListener() {}
  static get permission() { return localStorage.getItem("test-permission") || "default"; }
  static async requestPermission() {
    localStorage.setItem("test-permission", "granted");
    return "granted";
  }
};
document.hasFocus = () => localStorage.getItem("test-focus") === "yes";
"""


def shown(page: Page) -> Any:
    return page.evaluate("window.shown")


def test_new_questions_are_shown_by_the_browser_once_somebody_asked_for_it(
    bot: Bot, visit: Visit
) -> None:
    page = visit("ada")
    page.add_init_script(RECORDER)
    page.goto("/")
    is_live(page)
    bot.ask("Before anybody asked?")
    expect(page.locator("#inbox-count")).to_contain_text("1")
    assert shown(page) == []

    page.goto("/settings/")
    switch = page.get_by_role("button", name="Show new questions")
    switch.click()
    expect(page.get_by_role("button", name="Show no more")).to_have_attribute(
        "aria-pressed", "true"
    )
    is_live(page)
    question = bot.ask("Ship <b>2.4.0</b>?")

    # The title changes with the frame that brings the notice.
    expect(page).to_have_title("(2) Settings \u00b7 Obversa")
    # What was asked in the very second in which the page was made may be told as well.
    told = until(lambda: [one for one in shown(page) if one[0] == question.decision_text] or None)
    title, body, tag = told[0]
    before = len(shown(page))
    assert (title, tag) == ("Ship <b>2.4.0</b>?", f"gate-{question.pk}")
    assert body == question.fingerprint

    page.evaluate("localStorage.setItem('test-focus', 'yes')")
    bot.ask("While somebody looks?")
    expect(page).to_have_title("(3) Settings \u00b7 Obversa")
    assert len(shown(page)) == before

    page.evaluate("localStorage.setItem('test-focus', 'no')")
    page.get_by_role("button", name="Show no more").click()
    bot.ask("After it was switched off?")
    expect(page).to_have_title("(4) Settings \u00b7 Obversa")
    assert len(shown(page)) == before


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_a_channel_is_added_tested_and_removed(visit: Visit, *, scripts: bool) -> None:
    page = visit(user("ada", email="ada@example.com"), java_script_enabled=scripts)
    page.goto("/settings/")
    page.get_by_role("link", name="Add e-mail").click()
    expect(page.get_by_text("ada@example.com")).to_be_visible()
    page.get_by_label("a run passed").check()
    page.get_by_role("button", name="Add the channel").click()

    page.get_by_role("link", name="Mail", exact=True).click()
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_text("A test is on its way to Mail.")).to_be_visible()
    assert Delivery.objects.get().kind == "channel.test"
    assert Channel.objects.get().wants == ["asked", "failed", "finished", "reminded"]
    page.get_by_role("button", name="Remove the channel").click()

    expect(page.get_by_text("You are told nowhere but here.")).to_be_visible()


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("phone", "dark")])
def test_axe_finds_nothing_where_somebody_is_told(visit: Visit, size: str, theme: str) -> None:
    person = user("ada", email="ada@example.com", groups=["Release"], perms=["gates.change_team"])
    team = person.groups.get()
    channel = ways.webhook_of("Release", "https://example.com/")
    for state, error in (
        ("failed", "The host answered 503."),
        ("withdrawn", "Closed."),
        ("sent", ""),
    ):
        Delivery.objects.create(
            channel=ways.service_of("ada"),
            kind="channel.test",
            key=state,
            state=state,
            error=error,
            next_at=channel.created_at,
            created_at=channel.created_at,
            done_at=channel.created_at,
        )
    page = visit(person, size=size, theme=theme)

    found = []
    for address in (
        "/settings/",
        "/notifications/",
        "/channels/add/service/",
        f"/channels/{channel.pk}/",
        f"/teams/{team.pk}/",
    ):
        page.goto(address)
        found += findings(page)
    assert found == []
