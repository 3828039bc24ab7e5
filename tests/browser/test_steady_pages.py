"""Pages that keep still: nothing moves as scripts and live parts arrive, and none stands still."""

from __future__ import annotations

import time

from playwright.sync_api import Route, expect

from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import user

PANEL = """count => {
  const nodes = Array.from({ length: count }, (_, at) => ({
    id: `n${at}`, label: `step ${at}`, status: "passed", word: "passed",
  }));
  const source = document.createElement("script");
  source.id = "graph-data";
  source.type = "application/json";
  source.textContent = JSON.stringify({ nodes, groups: [], edges: [] });
  const panel = document.createElement("details");
  panel.className = "graph-panel";
  panel.dataset.graphPanel = "";
  panel.innerHTML = '<summary>Graph</summary><div class="graph" data-graph="graph-data"></div>';
  document.querySelector(".run-main").append(source, panel);
  htmx.process(panel);
}"""


def test_the_answer_keeps_its_place_while_scripts_arrive(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?", about={f"fact{number}": number for number in range(12)})
    page = visit("ada")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/js/app.js", hold)
    page.goto(question.get_absolute_url(), wait_until="commit")
    claim = page.get_by_role("button", name="Claim and answer")
    expect(claim).to_be_visible()
    expect(page.locator(".subject")).not_to_have_attribute("data-tabbed", "")
    page.wait_for_function("() => [...document.styleSheets].length > 20")
    place = page.locator(".timeline").bounding_box()
    until = time.monotonic() + 20
    while not held and time.monotonic() < until:
        page.evaluate("1")
    held[0].continue_()
    expect(page.locator(".subject")).to_have_attribute("data-tabbed", "")
    after = page.locator(".timeline").bounding_box()

    assert place is not None
    assert after is not None
    assert abs(after["y"] - place["y"]) <= 2


def test_a_time_stays_in_the_readers_zone_when_a_part_is_merged_in(bot: Bot, visit: Visit) -> None:
    run = bot.ask("Ship it?").run
    page = visit(user("ada", perms=["runs.view_run"]), timezone_id="Pacific/Kiritimati")
    page.goto(run.get_absolute_url())
    began = page.locator("#run-status time[data-time=day]").first
    expect(page.locator("#live")).to_have_attribute("data-live", "live")
    shown, exact = began.inner_text(), began.get_attribute("title")
    assert exact is not None
    assert "GMT+14" in exact

    # The server's own words are taken in again, as after a lost connection.
    page.locator("#run-status").evaluate("facts => facts.setAttribute('data-before', '')")
    page.evaluate("window.dispatchEvent(new Event('online'))")

    expect(page.locator("#run-status")).not_to_have_attribute("data-before", "")
    expect(began).to_have_attribute("title", exact)
    expect(began).to_have_text(shown)


def test_a_graph_of_very_many_steps_is_drawn_when_asked_for(bot: Bot, visit: Visit) -> None:
    run = bot.ask("Ship it?").run
    page = visit(user("ada", perms=["runs.view_run"]))
    page.goto(run.get_absolute_url())
    page.evaluate(PANEL, 401)
    page.locator(".graph-panel > summary").click()

    expect(page.locator(".graph-offer")).to_contain_text("401 steps")
    expect(page.locator(".graph svg")).to_have_count(0)
    page.get_by_role("button", name="Draw it all the same").click()
    expect(page.locator(".graph [data-node]")).to_have_count(401)


def test_paper_is_light_where_the_screen_was_dark(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada", theme="dark")
    page.goto(question.get_absolute_url())
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    scheme = "getComputedStyle(document.documentElement).colorScheme"
    assert page.evaluate(scheme) == "dark"

    page.emulate_media(media="print")

    assert page.evaluate(scheme) == "light"
    for pressed in (".tab-row", ".decision-bar", ".rail", "form button"):
        expect(page.locator(pressed).filter(visible=True)).to_have_count(0)
