"""A person's review of a writer's work: what they say comes back to it, until they approve."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, expect

from gates.models import Request
from runs import publishing, registry, services
from runs.models import Run
from tests.browser import paper
from tests.browser.conftest import PATIENCE_MS, Visit
from tests.browser.product import Product
from tests.factories import user


def question_of(run: Run, number: int) -> Request:
    """The run's question of that round, once it is asked."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        rows = list(Request.objects.filter(run=run).order_by("asked_seq"))
        if len(rows) == number:
            return rows[-1]
        time.sleep(0.05)
    raise AssertionError(f"the run has not asked {number} times.")


def comment(page: Page, line: int, words: str) -> None:
    """Point at the number of a line as it is now, and say something about it."""
    cell = page.locator(f'.diff-number[data-side="new"]:text-is("{line}")')
    cell.click()
    page.get_by_label(f"Comment on line {line}", exact=True).fill(words)


def claimed(page: Page) -> None:
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_two_comments_come_back_to_the_writer_who_runs_again_and_is_approved(
    product: Product, visit: Visit, size: str
) -> None:
    registry.enlist(publishing.offered()[paper.NAME])
    ada = user("ada")
    run = services.start_run(paper.NAME, {}, actor=f"user:{ada.pk}")
    first = question_of(run, 1)
    page = visit(ada, size=size)
    page.goto(first.get_absolute_url())
    expect(page.locator(".diff-path")).to_have_text("paper.md")
    claimed(page)
    comment(page, 3, "Use the number.")
    comment(page, 20, "Here too.")
    expect(page.locator(".diff-tally")).to_have_text("2 comments")
    page.get_by_role("button", name="Request changes").click()

    expect(page.locator(".receipt-decision")).to_have_text("Changes requested")
    expect(page.locator(".diff-comment .diff-words")).to_have_text(["Use the number.", "Here too."])
    second = question_of(run, 2)
    page.goto(second.get_absolute_url())
    added = page.locator('.diff-row[data-kind="new"] .diff-text')
    expect(added.filter(has_text="Mended: Use the number.")).to_have_count(1)
    expect(added.filter(has_text="Mended: Here too.")).to_have_count(1)
    claimed(page)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".receipt-decision")).to_have_text("Approved")

    page.goto(run.get_absolute_url())
    expect(page.locator("main, .topbar").get_by_text("passed").first).to_be_visible()
    response = first.responses.get().response
    assert response["prompt"] == "paper.md:3: Use the number.\n\npaper.md:20: Here too."
    assert {one["author"]["id"] for one in response["feedback"]["annotations"]} == {"ada"}
