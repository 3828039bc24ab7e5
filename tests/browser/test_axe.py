"""No finding of axe on any page, in both themes, on a desk and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group
from playwright.sync_api import Page, expect

from gates.models import Request
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import make_run, user

TEAM = {"groups": ["Release"]}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "channel": {"type": "string", "enum": ["stable", "beta"]},
        "percent": {"type": "integer", "description": "How much of the traffic"},
        "notify": {"type": "array", "items": {"type": "string", "enum": ["mail", "chat"]}},
        "extra": {"type": "object"},
    },
    "required": ["channel"],
}
ELSEWHERE = (
    "/runs/", "/workflows/", "/workflows/release/start/", "/teams/", "/settings/", "/operations/",
    "/nowhere/",
)  # fmt: skip
LOOKS = [("desk", "light"), ("phone", "dark"), ("desk", "dark"), ("phone", "light")]


def findings(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{page.url} {one['id']} ({one['impact']}): {one['nodes'][0]['html'][:160]}"
        for one in found
        if one["impact"] in ("serious", "critical", "moderate")
    ]


@pytest.fixture
def questions(bot: Bot) -> list[Request]:
    user(
        "ada",
        groups=["Release"],
        perms=[
            "gates.change_request",
            "gates.view_request",
            "runs.add_run",
            "gates.change_team",
            "runs.view_run",
        ],
    )
    make_run(audience={"users": ["ada"]})
    about = {"service": "shop", "changes": [{"id": "abc1234", "subject": "Fix it"}], "on": True}
    return [
        bot.ask("Ship **it**?\n\n- now", audience=TEAM, about=about),
        bot.ask("Which channel?", audience=TEAM, schema=FORM),
    ]


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_axe_finds_nothing(questions: list[Request], visit: Visit, size: str, theme: str) -> None:
    first, second = questions
    page = visit("ada", size=size, theme=theme)
    found: list[str] = []

    def look(address: str = "") -> None:
        if address:
            page.goto(address)
        expect(page.locator("#main-content")).to_be_visible()
        found.extend(findings(page))

    # The looks differ in colours and in layout: two of the four bring every pair of them.
    if (size, theme) in LOOKS[:2]:
        for address in ELSEWHERE:
            look(address)
        team = f"/teams/{Group.objects.get(name='Release').pk}/"
        picked = "&".join(f"pick={row.pk}" for row in questions)
        for address in (
            team,
            f"{team}?q=ship",
            f"{team}times/",
            f"{team}calendar/",
            f"/bulk/?{picked}",
            "/?tab=unclaimed&select=1",
        ):
            look(address)
    look("/")
    look(second.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_role("button", name="Record the answer").click()
    expect(page.locator(".form-errors")).to_be_visible()
    look()
    look(first.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_label("Note")).to_be_visible()
    look()
    page.locator("[data-verdict=yes]").click()
    expect(page.locator(".receipt")).to_be_visible()
    look()
    run = page.locator("#run-rows .row-link")
    page.goto("/runs/")
    run.first.click()
    expect(page.locator("#run-status")).to_be_visible()
    look()
    page.context.clear_cookies()
    look("/sign-in/")

    assert found == []
