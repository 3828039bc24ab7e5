"""The admin in the product's own dress, under the policy that allows no inline script or style."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import user


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_admin_wears_the_colours_of_the_pages(bot: Bot, visit: Visit, theme: str) -> None:
    question = bot.ask("Ship it?")
    page = visit(user("root", is_staff=True, is_superuser=True), theme=theme)
    paper = "() => getComputedStyle(document.body).backgroundColor"
    page.goto("/runs/")
    colour = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")

    run = f"/admin/runs/run/{question.run_id}/change/"
    for address in ("/admin/", "/admin/runs/run/", run, "/admin/gates/request/"):
        page.goto(address)
        expect(page.locator("#site-name")).to_have_text("Obversa admin")
        assert page.evaluate(paper) == colour
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_theme_that_was_chosen_holds_in_the_admin_too(bot: Bot, visit: Visit) -> None:
    page = visit(user("root", is_staff=True, is_superuser=True))
    page.goto("/settings/")
    page.get_by_role("radiogroup", name="Theme").get_by_text("Dark").click()

    page.goto("/admin/")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    scheme = "() => getComputedStyle(document.documentElement).colorScheme"
    assert page.evaluate(scheme) == "dark"
