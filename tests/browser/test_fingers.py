"""A finger: whatever is pressed is 44 px high, on every page of a phone."""

from __future__ import annotations

from django.contrib.auth.models import Group
from playwright.sync_api import Page, expect

from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import user

# What stands in a sentence or in a line of data is as high as its line.
SMALL = """() => {
  const inLine = `p:not(.run-waiting *), dd, pre, .event, .json-tree, .facts, .gate-place,
    .unseen, .skip`;
  const found = [];
  const controls = "a, button, input:not([type=hidden]), select, textarea, summary";
  for (const control of document.querySelectorAll(controls)) {
    const seen = control.checkVisibility({ visibilityProperty: true });
    if (!seen || control.closest(inLine)) continue;
    // The link of a row lies over the whole row.
    const around = control.matches(".row-link") ? ".row" : "label";
    const { height } = (control.closest(around) ?? control).getBoundingClientRect();
    const name = control.textContent.trim() || control.name;
    if (height < 43.5) found.push(`${control.tagName} ${name}: ${height}`);
  }
  return found;
}"""


def opened(page: Page) -> Page:
    """Everything that folds, open, so that it is measured too."""
    page.evaluate(
        "() => document.querySelectorAll('details:not(.you)').forEach(one => { one.open = true; })"
    )
    return page


def test_whatever_is_pressed_is_large_enough_for_a_finger(bot: Bot, visit: Visit) -> None:
    ada = user(
        "ada", groups=["Release"], perms=["runs.view_run", "runs.add_run", "gates.change_team"]
    )
    question = bot.ask("Ship it?", audience={"groups": ["Release"]}, about={"list": [1, 2]})
    team = Group.objects.get(name="Release").pk
    page = visit(ada, size="phone", has_touch=True, is_mobile=True)

    for address in (
        "/", question.get_absolute_url(), question.run.get_absolute_url(), f"/teams/{team}/",
        f"/teams/{team}/calendar/", "/runs/", "/workflows/", "/workflows/release/start/",
        "/settings/",
    ):  # fmt: skip
        page.goto(address)
        assert opened(page).evaluate(SMALL) == [], address

    page.goto(question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.locator("button[data-verdict]")).to_have_count(2)
    assert opened(page).evaluate(SMALL) == []
    page.locator("#you-menu > summary").click()
    assert page.evaluate(SMALL) == []


def test_the_name_of_a_team_stays_whole_beside_its_search(bot: Bot, visit: Visit) -> None:
    ada = user("ada", groups=["Release managers"])
    bot.ask("Ship it?", audience={"groups": ["Release managers"]})
    page = visit(ada, size="phone")
    page.goto(f"/teams/{Group.objects.get(name='Release managers').pk}/")

    cut = page.locator("h1").evaluate("name => name.scrollWidth > name.clientWidth")
    assert cut is False
