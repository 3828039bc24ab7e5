"""Frames that come in the wrong order, twice or never: the page shows the record (I103)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from gates import services
from gates.models import Request
from runs.models import Run
from tests.browser.asking import Bot
from tests.browser.conftest import Visit
from tests.browser.test_live import is_live, recorded_events, shown_events
from tests.factories import person, user


class Wire:
    """The socket of a run page, whose frames the test hands on as it likes."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.held: list[str | bytes] = []
        self.route: WebSocketRoute | None = None
        page.route_web_socket("**/ws/runs/**", self._opened)

    def _opened(self, route: WebSocketRoute) -> None:
        self.route = route
        route.connect_to_server().on_message(self._heard)

    def _heard(self, frame: str | bytes) -> None:
        self.held.append(frame)

    def caught(self, act: Callable[[], object]) -> str | bytes:
        """The one frame that tells of the act; the page does not get it."""
        before = len(self.held)
        act()
        for _ in range(200):
            if len(self.held) > before:
                return self.held[-1]
            self.page.wait_for_timeout(50)
        raise AssertionError("No frame came.")

    def send(self, *frames: str | bytes) -> None:
        assert self.route is not None
        for frame in frames:
            self.route.send(frame)


@pytest.fixture
def question(bot: Bot) -> Request:
    return bot.ask("Ship it?")


def acts(question: Request, count: int) -> list[Callable[[], object]]:
    ada = person("ada")
    both = (
        lambda: services.claim(question.pk, principal=ada),
        lambda: services.release(question.pk, principal=ada),
    )
    return [both[number % 2] for number in range(count)]


def opened(visit: Visit, run: Run) -> Wire:
    page = visit(user("ada", perms=["runs.view_run"]))
    wire = Wire(page)
    page.goto(run.get_absolute_url())
    is_live(page)
    return wire


def shows_the_record(page: Page, run: Run) -> None:
    recorded = recorded_events(run)
    for seq in recorded:
        expect(page.locator(f"#event-{seq}")).to_have_count(1)
    assert shown_events(page) == recorded


def test_frames_out_of_order_and_twice_are_shown_once_in_order(
    question: Request, visit: Visit
) -> None:
    wire = opened(visit, question.run)
    one, two, three = [wire.caught(act) for act in acts(question, 3)]

    wire.send(three, one, two, two)

    shows_the_record(wire.page, question.run)


def test_a_frame_that_never_comes_is_read_again_however_often_it_happens(
    question: Request, visit: Visit
) -> None:
    wire = opened(visit, question.run)
    # However slow the machine is: for the page the second loss comes right after the first.
    wire.page.clock.set_fixed_time(wire.page.evaluate("Date.now()"))
    for _ in range(2):
        _lost, came = [wire.caught(act) for act in acts(question, 2)]
        wire.send(came)
        shows_the_record(wire.page, question.run)
