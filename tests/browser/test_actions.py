"""Somebody allows an action, for once and for a conversation, takes that back, and denies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from gates.models import Grant, Request
from runs import publishing, registry, services
from runs.models import Event, Run
from tests.browser.acting_flow import NAME
from tests.browser.conftest import Visit
from tests.browser.product import Product
from tests.browser.test_axe import findings
from tests.browser.waiting import until
from tests.factories import ada

Start = Callable[[str], Run]


@pytest.fixture
def start(product: Product) -> Start:
    """Start a run of the conversation "autumn" that publishes the draft of this name."""
    registry.enlist(publishing.offered()[NAME])

    def begin(draft: str) -> Run:
        return services.start_run(NAME, {"draft": draft}, actor=ada().actor, conversation="autumn")

    return begin


def question_of(run: Run) -> Request:
    return until(lambda: Request.objects.filter(run=run).first())


def ended(run: Run) -> str:
    return until(lambda: Run.objects.filter(pk=run.pk, ended_at__isnull=False).first()).status


def opened(page: Page, row: Request) -> Page:
    page.goto(row.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    return page


def shown(page: Page, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("OBVERSA_TEST_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True, caret="initial")


@pytest.mark.parametrize("scripts", [True, False])
def test_an_action_is_allowed_for_its_conversation_and_that_is_taken_back(
    start: Start, visit: Visit, scripts: bool
) -> None:
    page = opened(visit("ada", java_script_enabled=scripts), question_of(first := start("d1")))
    expect(page.get_by_text("12.50 EUR")).to_be_visible()
    expect(page.get_by_text("1 value of it is hidden from you")).to_be_visible()
    expect(page.get_by_text("in the conversation autumn")).to_be_visible()
    page.get_by_role("button", name="Allow for this conversation").click()
    expect(page.locator(".receipt")).to_contain_text("Allowed for the conversation")
    assert ended(first) == "passed"

    second = start("d2")
    assert ended(second) == "passed"
    assert not Request.objects.filter(run=second).exists()

    page.goto("/grants/")
    expect(page.locator(".grant")).to_contain_text("Every call of publish_on_page")
    page.get_by_role("button", name="Revoke the grant for publish_on_page").click()
    expect(page.locator(".grant")).to_contain_text("revoked")
    assert Grant.objects.get().revoked_by == ada().actor
    assert question_of(start("d3")).is_open


def test_an_action_is_denied_with_its_reason(start: Start, visit: Visit) -> None:
    page = opened(visit("ada"), question_of(run := start("d1")))
    page.get_by_label("Note").fill("not this week")
    page.get_by_role("button", name="Deny").click()

    expect(page.locator(".receipt")).to_contain_text("Denied")
    expect(page.locator(".receipt")).to_contain_text("not this week")
    assert ended(run) == "failed"
    assert not Event.objects.filter(run=run, kind="tool.reserved").exists()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_the_card_fits_its_screen(start: Start, visit: Visit, size: str, theme: str) -> None:
    row = question_of(start("a-draft-with-a-rather-long-name-of-its-own"))
    page = visit("ada", size=size, theme=theme)
    page.goto(row.get_absolute_url())
    shown(page, f"claim-{size}-{theme}")
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_role("button", name="Deny")).to_be_visible()
    shown(page, f"card-{size}-{theme}")
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="Allow for this conversation").click()
    expect(page.locator(".receipt")).to_be_visible()
    ended(row.run)
    page.reload()
    shown(page, f"receipt-{size}-{theme}")
    page.goto("/grants/")
    expect(page.locator(".grant")).to_be_visible()
    shown(page, f"grants-{size}-{theme}")
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
