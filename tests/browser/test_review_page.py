"""The page of a change: by keys alone, without scripts, with many files, kept over a reload."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from gates.models import Request
from runs import human_review, run
from runs.drivers.callbacks import create_callback_client
from runs.kernel.annotations import RESPONSE_SCHEMA
from runs.kernel.interactions import wrapped_schema
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.test_axe import findings

SCHEMA = wrapped_schema(RESPONSE_SCHEMA, review=True)
SMALL: dict[str, Any] = {
    "a.py": {"old": "one\ntwo\nthree\n", "new": "one\nzwei\nthree\n"},
    "b.py": {"old": "left\n", "new": "right\n"},
}


def ask(bot: Bot, changes: dict[str, Any] = SMALL) -> Request:
    return bot.ask(
        "Is the change right?",
        schema=SCHEMA,
        about={"changes": changes},
        presentation={"diff": "/changes"},
    )


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.innerText")).strip()


def said(row: Request) -> list[tuple[str, str, int, str]]:
    listed = row.responses.get().response["feedback"]["annotations"]
    return [
        (*(one["anchor"][part] for part in ("target", "side", "position")), one["body"])
        for one in listed
    ]


def test_a_change_is_walked_commented_and_sent_back_by_keys_alone(bot: Bot, visit: Visit) -> None:
    row = ask(bot)
    page = visit("ada")
    page.goto(row.get_absolute_url())
    page.keyboard.press("c")
    expect(page.get_by_role("group", name="Your answer")).to_be_focused()
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()

    page.keyboard.press("n")
    assert "two" in focused(page)
    page.keyboard.press("ArrowDown")
    assert "zwei" in focused(page)
    page.keyboard.press("c")
    expect(page.get_by_label("Comment on line 2", exact=True)).to_be_focused()
    page.keyboard.type("nc: keys are text in here")
    page.keyboard.press("Escape")
    assert "zwei" in focused(page)
    page.keyboard.press("n")
    assert "left" in focused(page)
    page.keyboard.press("c")
    page.keyboard.type("Why?")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("p")
    assert "two" in focused(page)
    page.keyboard.press("Shift+N")
    assert "b.py" in focused(page)
    page.keyboard.press("y")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator(".receipt-decision")).to_have_text("Changes requested")
    assert said(row) == [
        ("a.py", "new", 2, "nc: keys are text in here"),
        ("b.py", "old", 1, "Why?"),
    ]


def test_without_scripts_each_file_has_a_box_for_comments(bot: Bot, visit: Visit) -> None:
    row = ask(bot)
    page = visit("ada", java_script_enabled=False, size="phone")
    page.goto(row.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    page.get_by_role("button", name="Request changes").click()
    expect(page.get_by_role("alert")).to_contain_text("Say on at least one line")

    box = page.locator('.diff-file[data-file="1"] .diff-box')
    box.locator("summary").click()
    box.get_by_label("Comments").fill("9: Which line?")
    page.get_by_role("button", name="Request changes").click()
    expect(page.get_by_role("alert")).to_contain_text("b.py has no line 9")
    expect(box.get_by_label("Comments")).to_have_value("9: Which line?")
    box.get_by_label("Comments").fill("1: Left was right.")
    page.get_by_role("button", name="Request changes").click()

    expect(page.locator(".receipt-decision")).to_have_text("Changes requested")
    expect(page.locator(".diff-comment")).to_contain_text("Left was right.")
    assert said(row) == [("b.py", "new", 1, "Left was right.")]


def test_comments_outlive_a_reload_and_another_view_and_are_gone_once_recorded(
    bot: Bot, visit: Visit
) -> None:
    row = ask(bot)
    page = visit("ada")
    page.goto(row.get_absolute_url())
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    page.locator('.diff-number[data-side="new"]').filter(has_text="2").click()
    area = page.get_by_label("Comment on line 2", exact=True)
    area.fill("In English.")
    page.reload()
    expect(area).to_have_value("In English.")
    page.get_by_role("link", name="Split").click()
    expect(area).to_have_value("In English.")
    expect(page.locator('[data-to-file="0"] .diff-has')).to_have_text("1")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_contain_text("An approval holds no comments")
    expect(area).to_have_value("In English.")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator(".diff-tally")).to_be_hidden()
    page.get_by_role("button", name="Approve").click()

    expect(page.locator(".receipt-decision")).to_have_text("Approved")
    assert not [key for key in page.evaluate("Object.keys(localStorage)") if "comments" in key]


def test_the_files_of_a_long_change_come_when_they_are_reached(bot: Bot, visit: Visit) -> None:
    many = {f"f{n:03}.txt": {"old": f"{n}\n", "new": f"{n} more\n"} for n in range(120)}
    row = ask(bot, many)
    page = visit("ada")
    page.goto(row.get_absolute_url())
    last = page.locator('.diff-file[data-file="119"]')
    expect(last.locator(".diff-row")).to_have_count(0)
    page.locator('[data-to-file="119"]').click()
    expect(last.locator(".diff-row")).to_have_count(2)
    expect(last).to_be_in_viewport()
    expect(page.locator('.diff-file[data-file="60"] .diff-row')).to_have_count(0)


def test_a_change_stays_within_a_phone(bot: Bot, visit: Visit) -> None:
    long = "word " * 200 + "\n"
    row = ask(bot, {"a-name-of-a-file/" * 8 + "x" * 120: {"old": "x" * 500, "new": long}})
    for query in ("", "?view=split"):
        page = visit("ada", size="phone")
        page.goto(row.get_absolute_url() + query)
        expect(page.locator(".diff-row")).not_to_have_count(0)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0


@pytest.mark.parametrize(("size", "theme"), [("desk", "light"), ("phone", "dark")])
def test_axe_finds_nothing_on_a_change(bot: Bot, visit: Visit, size: str, theme: str) -> None:
    row = ask(bot)
    page = visit("ada", size=size, theme=theme)
    found: list[str] = []
    for view in ("unified", "split"):
        page.goto(f"{row.get_absolute_url()}?view={view}")
        found += findings(page)
    page.get_by_role("button", name="Claim and answer").click()
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    page.locator('[data-file="1"] .diff-number[data-side="new"]').click()
    page.get_by_label("Comment on line 1", exact=True).fill("Why?")
    found += findings(page)
    page.get_by_role("button", name="Request changes").click()
    expect(page.locator(".diff-comment")).to_contain_text("Why?")
    assert found + findings(page) == []


def test_the_page_of_a_run_in_a_script_takes_a_review(browser: Browser) -> None:
    client = create_callback_client()
    job = human_review("check", "Is the draft ready?", input={"draft": "words"})
    result = run(job, callbacks=client, monitor=True)
    page = browser.new_page()
    try:
        page.goto(result.monitor.url)
        answers = page.get_by_label("Which answer").locator("option")
        expect(answers).to_have_text(['decision: "approved"', 'decision: "changes-requested"'])
        page.get_by_label("Which answer").select_option(index=1)
        page.get_by_label("Your decision").fill("Shorter.")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#no-questions")).to_be_visible()
    finally:
        page.close()
        result.monitor.close()
    again = run(job, callbacks=client).outcome
    assert (again.status, again.summary) == ("fail", "Shorter.")
