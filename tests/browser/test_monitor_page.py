"""The run's own page in a browser (gates.md G181-G189)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from runs.drivers.callbacks import CallbackClient, create_callback_client
from runs.drivers.memory import run
from runs.kernel.gate import create_callback_gate
from runs.kernel.questions import Question, question_request, read_questions
from runs.shapes.approval import approval
from runs.shapes.dag import dag
from runs.shapes.steps import fn_job

BASE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What it is called"},
        "count": {"type": "integer"},
        "kind": {"const": "release"},
        "size": {"enum": ["small", "large"]},
        "prompt": {},
    },
    "required": ["title", "count", "kind", "size", "prompt"],
}
EITHER = {
    "allOf": [{"properties": {"who": {"type": "string"}}, "required": ["who"]}],
    "anyOf": [
        {"title": "Take it", "properties": {"verdict": {"const": "take"}}, "required": ["verdict"]},
        {
            "properties": {"verdict": {"const": "leave"}, "why": {"type": "string"}},
            "required": ["verdict", "why"],
        },
    ],
}


class Shown:
    """A run that paused, its page, and the client behind it."""

    def __init__(self, page: Page, client: CallbackClient, monitor: Any) -> None:
        self.page = page
        self.client = client
        self.monitor = monitor

    def response(self) -> Any:
        found = [event for event in self.client.history() if "response" in event]
        return found[0]["response"] if found else None

    def ask(self, schema: Any, subject: Any = None, text: str = "Which?") -> None:
        definition = {
            "gateId": "more",
            "gateVersion": 1,
            "decisionText": text,
            "responseSchema": schema,
            "input": subject,
        }
        self.client.post(create_callback_gate(definition))
        self.page.reload()


@pytest.fixture
def shown(browser: Browser) -> Iterator[Shown]:
    client = create_callback_client()
    job = dag(
        "Release",
        {
            "build": fn_job("build", lambda _ctx: "built <b>v1</b>"),
            "ok": approval("ok", "Ship it? <img src=x onerror=alert(1)>"),
        },
    )
    result = run(job, callbacks=client, monitor=True)
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.goto(result.monitor.url)
    yield Shown(page, client, result.monitor)
    page.close()
    result.monitor.close()
    # What a refused answer writes there by itself is expected.
    assert [text for text in complaints if "status of 400" not in text] == []


def test_the_page_shows_the_run_and_strangers_text_as_text(shown: Shown) -> None:
    page = shown.page
    expect(page.get_by_role("heading", level=1)).to_have_text("Release")
    expect(page.get_by_role("status")).to_contain_text("waits")
    expect(page.locator("#steps li")).to_have_count(2)
    expect(page.locator("#steps")).to_contain_text("built <b>v1</b>")
    expect(page.locator("#questions h3")).to_have_text("Ship it? <img src=x onerror=alert(1)>")
    expect(page.locator("#events li")).not_to_have_count(0)
    assert page.locator("#questions img").count() == 0


def test_yes_with_a_note_answers(shown: Shown) -> None:
    shown.page.get_by_label("Note").fill("go")
    shown.page.get_by_role("button", name="Yes").click()

    expect(shown.page.locator("#no-questions")).to_be_visible()
    assert shown.response() == {"approved": True, "note": "go"}


def test_a_blank_note_is_left_out_of_a_no(shown: Shown) -> None:
    shown.page.get_by_label("Note").fill("  ")
    shown.page.get_by_role("button", name="No", exact=True).click()

    expect(shown.page.locator("#no-questions")).to_be_visible()
    assert shown.response() == {"approved": False}


def test_fields_come_from_the_schema_and_a_refusal_keeps_what_was_typed(shown: Shown) -> None:
    page = shown.page
    shown.ask(BASE)
    form = page.locator("article", has_text="Which?")
    form.get_by_label("What it is called").fill("1.0")
    form.get_by_label("count").fill("many")
    form.get_by_label("size").select_option(label="large")
    form.get_by_label("Your decision").fill("do it")
    form.get_by_role("button", name="Send").click()
    expect(form.get_by_role("alert")).to_contain_text("count")
    expect(form.get_by_label("What it is called")).to_have_value("1.0")

    form.get_by_label("count").fill("3")
    form.get_by_role("button", name="Send").click()
    expect(form).to_have_count(0)
    assert shown.response() == {
        "title": "1.0",
        "count": 3,
        "kind": "release",
        "size": "large",
        "prompt": "do it",
    }


def test_the_questions_of_a_step_are_answered(shown: Shown) -> None:
    parts = [
        Question("Which colour?", key="colour", options=["red", "blue"]),
        Question("Which paper?", key="paper", options=["matt"], allow_other=True),
        Question("Which sizes?", key="sizes", options=["S", "M"], multiple=True, allow_other=True),
        Question("Anything else?", key="more", required=False),
    ]
    read = [one for one in read_questions(parts) if one is not None]
    shown.ask(question_request((), 1, read).to_wire()["responseSchema"])
    form = shown.page.locator("article", has_text="Which?")
    form.get_by_label("Which colour?").select_option(label="blue")
    form.get_by_label("Which paper?").fill("vellum")
    form.get_by_role("group", name="Which sizes?").get_by_label("M").check()
    form.get_by_label("Another, for Which sizes?").fill("XL")
    expect(form.get_by_label("Anything else?")).to_be_visible()
    form.get_by_role("button", name="Send").click()

    expect(form).to_have_count(0)
    assert shown.response() == {"colour": "blue", "paper": "vellum", "sizes": ["M", "XL"]}


def test_a_person_picks_one_combination_first(shown: Shown) -> None:
    page = shown.page
    shown.ask(EITHER)
    form = page.locator("article", has_text="Which?")
    expect(form.get_by_label("Which answer").locator("option")).to_have_text(
        ["Take it", 'why, verdict: "leave"']
    )
    form.get_by_label("Which answer").select_option(index=1)
    form.get_by_label("who").fill("ada")
    form.get_by_label("why").fill("too early")
    form.get_by_role("button", name="Send").click()

    expect(form).to_have_count(0)
    assert shown.response() == {"who": "ada", "verdict": "leave", "why": "too early"}


def test_only_web_addresses_become_links(shown: Shown) -> None:
    page = shown.page
    shown.ask(BASE, {"url": "javascript:alert(1)"})
    expect(page.locator("article", has_text="Which?")).to_contain_text("javascript:alert(1)")
    assert page.locator("#questions a").count() == 0
    shown.ask(BASE, {"url": "https://example.org/x"})
    expect(page.locator("#questions a")).to_have_attribute("href", "https://example.org/x")


def test_typed_text_stays_while_other_questions_come_and_go(browser: Browser) -> None:
    client = create_callback_client()

    def work(_ctx: Any) -> None:
        page = browser.new_page()
        page.goto(addresses[0])
        page.get_by_label("Note").fill("half a sentence")
        client.post(
            create_callback_gate(
                gate_id="more",
                gate_version=1,
                decision_text="Another?",
                response_schema={"type": "object"},
                input=None,
            )
        )
        expect(page.locator("article")).to_have_count(2)
        expect(page.get_by_label("Note")).to_have_value("half a sentence")
        page.close()

    addresses: list[str] = []

    def note(event: Any) -> None:
        if event["kind"] == "monitor":
            addresses.append(event["url"])
        if event["kind"] == "dag:node" and event.get("outcome", {}).get("status") == "paused":
            work(None)

    job = dag("g", {"ok": approval("ok", "Ship it?")})
    result = run(job, callbacks=client, monitor=True, on_event=note)
    result.monitor.close()
    assert [one.gate_id for one in client.list_pending()] == ["ok", "more"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(shown: Shown, theme: Any) -> None:
    shown.ask(BASE, {"url": "https://example.org/x"})
    shown.page.emulate_media(color_scheme=theme)
    expect(shown.page.locator("article")).to_have_count(2)

    found = Axe().run(shown.page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []


def test_the_keyboard_alone_answers(shown: Shown) -> None:
    shown.page.get_by_label("Note").focus()
    shown.page.keyboard.type("fine")
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("Enter")

    expect(shown.page.locator("#no-questions")).to_be_visible()
    assert shown.response() == {"approved": True, "note": "fine"}
