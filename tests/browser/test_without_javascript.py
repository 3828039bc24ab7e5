"""Reading, claiming and answering with no script at all."""

from __future__ import annotations

from playwright.sync_api import expect

from gates.models import Request
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.product import Product
from tests.factories import user

CHOICE = {
    "type": "object",
    "properties": {
        "channel": {"type": "string", "enum": ["stable", "beta"]},
        "percent": {"type": "integer", "minimum": 1, "maximum": 100},
    },
    "required": ["channel", "percent"],
}


def test_an_approval_is_claimed_refused_by_mistake_and_answered(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada", java_script_enabled=False)
    page.goto("/")
    page.get_by_role("link", name="Ship it?").click()
    expect(page).to_have_url(page.url.split("/gates/")[0] + question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_label("Note").fill("Looks right.")
    page.get_by_role("button", name="Approve").click()

    expect(page.locator(".receipt")).to_contain_text("Approved")
    expect(page.locator(".receipt")).to_contain_text("Looks right.")
    question.refresh_from_db()
    assert question.status == Request.Status.ANSWERED


def test_a_wrong_answer_keeps_what_was_typed(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Which channel?", schema=CHOICE)
    page = visit("ada", java_script_enabled=False)
    page.goto(question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_label("beta").check()
    page.get_by_label("Percent").fill("200")
    page.get_by_role("button", name="Record the answer").click()

    expect(page.get_by_role("alert")).to_contain_text("The answer was not recorded")
    expect(page.get_by_label("beta")).to_be_checked()
    expect(page.get_by_label("Percent")).to_have_value("200")
    assert not question.responses.exists()
    page.get_by_label("Percent").fill("20")
    page.get_by_role("button", name="Record the answer").click()

    expect(page.locator(".receipt")).to_be_visible()
    assert question.responses.get().response == {"channel": "beta", "percent": 20}


def test_a_run_is_started_and_read(product: Product, visit: Visit) -> None:
    page = visit(user("ada", perms=["runs.add_run"]), java_script_enabled=False)
    page.goto("/workflows/")
    page.get_by_role("link", name="Start Release a git repository").click()
    page.get_by_role("button", name="Start a run").click()
    expect(page.get_by_role("alert")).to_contain_text("The run was not started")
    page.get_by_label("Repository").fill("/nowhere/at/all")
    page.get_by_label("Version").fill("1.1.0")
    page.get_by_role("button", name="Start a run").click()

    expect(page.locator("#run-status")).to_be_visible()
    expect(page.locator("#run-events")).to_contain_text("run started")
