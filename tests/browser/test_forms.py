"""Forms made from a schema: names that could break them, drafts, and what is pressed twice."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runs import fn_job, publishing, registry
from runs.models import Run
from tests.browser.conftest import Visit
from tests.browser.product import Product
from tests.factories import user

AWKWARD = [
    "submit", "action", "method", "id", "elements", "getAttribute", "matches", "dataset",
    "requestSubmit", "querySelector", "addEventListener", "parentNode", "nodeName",
]  # fmt: skip
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in AWKWARD},
    "required": ["submit"],
}


@pytest.fixture
def form(product: Product, visit: Visit) -> Page:
    """The start form of a workflow whose parameters are called like parts of a form."""
    publishing.publish(fn_job("f", str), name="awkward", title="Awkward names", params=SCHEMA)
    registry.enlist(publishing.offered()["awkward"])
    page = visit(user("ada", perms=["runs.view_run", "runs.add_run"]))
    page.goto("/workflows/awkward/start/")
    return page


def test_fields_called_like_parts_of_a_form_are_only_fields(form: Page) -> None:
    for name in AWKWARD:
        form.locator(f"[name='f-{name}']").fill(f"the {name}")

    form.get_by_role("button", name="Start").dblclick()

    form.wait_for_url("**/runs/**")
    run = Run.objects.get()
    assert run.params == {name: f"the {name}" for name in AWKWARD}


def test_a_draft_is_kept_until_the_run_has_started(form: Page) -> None:
    form.locator("[name='f-action']").fill("half of it")
    form.get_by_role("button", name="Start").click()
    expect(form.locator(".form-errors")).to_contain_text("This is required.")
    form.goto("/workflows/awkward/start/")
    expect(form.locator("[name='f-action']")).to_have_value("half of it")
    expect(form.get_by_text("Draft from")).to_be_visible()

    form.locator("[name='f-submit']").fill("the rest")
    form.get_by_role("button", name="Start").click()
    form.wait_for_url("**/runs/**")
    expect(form.locator("#run-status")).to_be_visible()
    form.goto("/workflows/awkward/start/")

    expect(form.locator("[name='f-action']")).to_have_value("")


def test_what_is_too_large_can_be_shortened_on_the_way_back(form: Page) -> None:
    text = form.locator("[name='f-submit']")
    text.evaluate("box => { box.value = 'x'.repeat(3 * 1024 * 1024); }")
    text.dispatch_event("input")
    form.get_by_role("button", name="Start").click()
    expect(form.get_by_role("heading", name="That is too large")).to_be_visible()

    form.go_back()

    expect(text).to_have_value("x" * 3 * 1024 * 1024)
    text.fill("short")
    form.get_by_role("button", name="Start").click()
    form.wait_for_url("**/runs/**")
