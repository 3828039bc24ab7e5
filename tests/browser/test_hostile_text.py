"""Strangers' text: names, titles, questions, notes and files that want to be more than text."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gates.models import Request
from runs import approval, dag, fn_job
from runs.models import Artifact, Run, Step, Workflow
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.factories import make_run, user

EVIL = (
    "<img src=x onerror=\"window.hacked='yes'\">\u202egnp.exe"
    "</textarea></script><script>hacked=1</script>"
)
NAMES = {"users": ["ada"]}


def is_harmless(page: Page) -> None:
    """Nothing ran, nothing was loaded, no mark turns the text around."""
    expect(page.locator("#main-content")).to_be_visible()
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("img[src=x], [onerror], a[href^='javascript:' i]").count() == 0
    assert "\u202e" not in page.inner_text("body")
    assert "\u202e" not in page.title()


@pytest.fixture
def question(bot: Bot) -> Request:
    return bot.ask(
        f"{EVIL}\n\n[click](javascript:alert(1)) ![x](x) <b>bold</b>",
        gate=EVIL[:80],
        about={EVIL: [EVIL, {"link": "javascript:alert(1)", "deep": EVIL}], "list": [EVIL] * 3},
        presentation={
            "yesLabel": EVIL, "noLabel": EVIL, "reasons": [EVIL],
            "summary": [{"label": EVIL, "pointer": "/list"}],
        },
        stream=f"evil {EVIL}"[:150],
    )  # fmt: skip


def test_a_question_made_of_markup_is_read_and_answered(question: Request, visit: Visit) -> None:
    page = visit(user("ada", first_name=EVIL[:100], last_name=EVIL[:100], perms=["runs.view_run"]))
    page.goto("/")
    is_harmless(page)
    page.locator("#inbox-list .row-link").click()
    expect(page.locator(".question")).to_contain_text("<img src=x")
    expect(page.locator(".question")).to_contain_text("<U+202E>")
    is_harmless(page)
    for tab in ("Raw", "Summary"):
        page.get_by_role("tab", name=tab).click()
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_label("Note").fill(EVIL)
    page.locator("[data-verdict=no]").click()
    expect(page.locator(".receipt blockquote")).to_contain_text("<img src=x")
    is_harmless(page)
    for address in (question.run.get_absolute_url(), "/?tab=history", "/runs/", "/settings/"):
        page.goto(address)
        is_harmless(page)


def test_a_run_made_of_markup_is_shown_as_text(visit: Visit) -> None:
    ask = approval(EVIL[:60], EVIL, audience=NAMES, input={EVIL: EVIL})
    job = dag("flow", {EVIL[:80]: {"job": ask, "desc": EVIL}, "x": fn_job("x", lambda ctx: EVIL)})
    run = make_run(job, params={EVIL: EVIL}, audience=NAMES, workflow=EVIL[:100])
    Run.objects.filter(pk=run.pk).update(title=EVIL)
    Step.objects.filter(run=run).update(summary=EVIL)
    facts: dict[str, Any] = {
        "digest": "sha256:" + "0" * 64,
        "media_type": EVIL,
        "size": 1,
        "seq": 1,
    }
    Artifact.objects.create(run=run, name=EVIL, created_at=run.created_at, **facts)
    Workflow.objects.update(title=EVIL, description=EVIL, error=EVIL)
    page = visit("ada")

    for address in (run.get_absolute_url(), "/runs/", "/workflows/", "/"):
        page.goto(address)
        is_harmless(page)
    page.goto(run.get_absolute_url())
    page.locator("#run-graph summary").click()
    expect(page.locator("#run-graph svg")).to_be_visible()
    is_harmless(page)


def test_a_megabyte_in_the_note_is_refused_in_words_and_kept(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    note = page.get_by_label("Note")
    note.evaluate("area => { area.value = 'x'.repeat(1024 * 1024); }")

    page.locator("[data-verdict=yes]").click()

    expect(page.locator(".receipt, .form-errors, .toast, .conflict").first).to_be_visible()
    assert page.locator(".receipt").count() == 1 or len(note.input_value()) == 1024 * 1024
