"""Pages that stay true by themselves: news, typing under fire, a server that goes and comes."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from gates import services
from runs.models import Event, Run
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.product import Product
from tests.factories import person, user


def is_live(page: Page) -> None:
    expect(page.locator("#live")).to_have_attribute("data-live", "live")


def shown_events(page: Page) -> list[int]:
    seqs = page.locator("#run-events > [data-seq]").evaluate_all(
        "rows => rows.map(row => Number(row.dataset.seq))"
    )
    return [int(seq) for seq in seqs]


def recorded_events(run: Run) -> list[int]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))


def test_new_questions_wait_behind_a_bar_and_are_counted(bot: Bot, visit: Visit) -> None:
    bot.ask("The first?")
    page = visit("ada")
    page.goto("/")
    is_live(page)
    expect(page.locator("#inbox-list .row")).to_have_count(1)

    bot.ask("The second?")
    bot.ask("The third?")

    bar = page.get_by_role("link", name="2 new, show")
    expect(bar).to_be_visible()
    expect(page.locator("#inbox-list .row")).to_have_count(1)
    expect(page.locator("#inbox-count")).to_contain_text("3")
    expect(page).to_have_title("(3) Inbox \u00b7 Obversa")
    expect(page.locator("#inbox-said")).to_have_text("2 new questions")
    bar.click()
    expect(page.locator("#inbox-list .row")).to_have_count(3)
    expect(bar).to_be_hidden()


def test_a_question_asked_before_the_socket_opens_is_news_too(bot: Bot, visit: Visit) -> None:
    page = visit("ada")
    page.route("**/hx-ws.min.js", lambda route: (bot.ask("In between?"), route.continue_()))
    page.goto("/")

    expect(page.get_by_role("link", name="1 new, show")).to_be_visible()


def test_typing_survives_what_happens_around_it(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    page = visit("ada")
    page.goto(question.get_absolute_url())
    is_live(page)
    page.get_by_role("button", name="Claim and answer").click()
    note = page.get_by_label("Note")
    note.click()
    wanted = ""
    for number in range(12):
        if number % 3 == 0:
            bot.ask(f"Another, number {number}?")
        part = f"part {number} of the note, "
        page.keyboard.type(part)
        wanted += part

    expect(page.get_by_role("link", name="4 new, show")).to_be_visible()
    expect(note).to_be_focused()
    expect(note).to_have_value(wanted)
    assert note.evaluate("area => area.selectionStart") == len(wanted)
    page.reload()
    expect(page.get_by_text("Draft from")).to_be_visible()
    expect(page.get_by_label("Note")).to_have_value(wanted)


def test_a_killed_server_costs_no_event_and_doubles_none(
    bot: Bot, visit: Visit, product: Product
) -> None:
    question = bot.ask("Ship it?")
    run, ada = question.run, person("ada")
    page = visit(user("ada", perms=["runs.view_run"]))
    page.goto(run.get_absolute_url())
    is_live(page)
    services.claim(question.pk, principal=ada)
    expect(page.locator("#run-events")).to_contain_text("claimed")

    product.stop(at_once=True)
    expect(page.locator("#live")).not_to_have_attribute("data-live", "live")
    for _ in range(20):
        services.release(question.pk, principal=ada)
        services.claim(question.pk, principal=ada)
    product.start()

    is_live(page)
    last = recorded_events(run)[-1]
    expect(page.locator(f"#event-{last}")).to_be_attached()
    services.release(question.pk, principal=ada)
    expect(page.locator("#run-events > [data-seq]").last).to_contain_text("released")
    expect(page.locator(f"#event-{last + 1}")).to_be_attached()
    assert shown_events(page) == recorded_events(run)


def test_a_burst_is_shown_whole(bot: Bot, visit: Visit) -> None:
    question = bot.ask("Ship it?")
    ada = person("ada")
    page = visit(user("ada", perms=["runs.view_run"]))
    page.goto(question.run.get_absolute_url())
    is_live(page)

    for _ in range(50):
        services.claim(question.pk, principal=ada)
        services.release(question.pk, principal=ada)

    last = recorded_events(question.run)[-1]
    expect(page.locator(f"#event-{last}")).to_be_attached()
    assert shown_events(page) == recorded_events(question.run)


def test_looking_at_many_questions_opens_one_socket(bot: Bot, visit: Visit) -> None:
    questions = [bot.ask(f"Ship number {number}?") for number in range(5)]
    page = visit("ada")
    opened: list[str] = []
    page.on("websocket", lambda socket: opened.append(socket.url))
    page.goto("/")
    for question in questions:
        page.locator(f"#row-{question.pk}-link").click()
        expect(page.locator(f"#gate-{question.pk}")).to_be_visible()
    is_live(page)

    assert [url.split("/ws/")[1].split("?")[0] for url in opened] == ["inbox/"]
