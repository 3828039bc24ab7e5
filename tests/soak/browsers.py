"""Pages in a real Chromium that stay open over every kill: nobody reloads them.

Each person has two: their inbox, open from the beginning to the end, and the page of one run after
the other, opened when the run is young and left when all of it is there.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.needs import find
from tests.soak.crowd import Crowd, Person
from tests.soak.servers import Missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS: Final = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
]  # fmt: skip
# What lasts over several kills; everybody looks at such a run when there is one.
LONG: Final = "soak-watch"
YOUNG: Final = 12
LOOK_SECONDS: Final = 0.5
# After its end a page may have to read itself again: at most every three seconds, and again after
# a break, so that this is what it takes where everything is killed meanwhile.
BEHIND_SECONDS: Final = 90.0
OPENING_MS: Final = 20_000
ROW: Final = re.compile(
    r'<li id="step-[^"]*" class="step" data-step="([^"]*)" data-status="([^"]*)"'
)
STATUS: Final = re.compile(r'<div id="run-status" class="run-facts" data-status="([^"]*)"')
LOOK: Final = """() => ({
  token: window.openedAs ?? "",
  seqs: [...document.querySelectorAll("#run-events > [data-seq]")].map(
    (row) => Number(row.dataset.seq)),
  ended: !!document.querySelector('#run-events > [data-kind="run:end"]'),
  status: document.querySelector("#run-status")?.dataset.status ?? "",
  steps: Object.fromEntries(
    [...document.querySelectorAll("#run-steps [data-step]")].map(
      (row) => [row.dataset.step, row.dataset.status])),
})"""
LOOK_AT_INBOX: Final = """() => ({
  token: window.openedAs ?? "",
  count: Number(document.querySelector("#inbox-count")?.dataset.inboxCount ?? -1),
  news: [...document.querySelectorAll("#inbox-news > [data-gate]")].map(
    (item) => item.dataset.gate),
  rows: [...document.querySelectorAll("#inbox-list > [data-row]")].map((row) => row.id.slice(4)),
})"""


@dataclass
class Shown:
    """What one page of a run showed when it was left."""

    run: str
    seqs: list[int] = field(default_factory=list)
    ended: bool = False
    # What is shown of the run and its steps, and what a page that is read anew says of them.
    rows: dict[str, str] = field(default_factory=dict)
    truth: dict[str, str] = field(default_factory=dict)
    reloaded: bool = False
    left: bool = False


@dataclass
class Inbox:
    """What one inbox showed in the end."""

    name: str
    count: int | None = None
    listed: list[str] = field(default_factory=list)
    reloaded: bool = False


class Seat:
    """One person at their browser."""

    def __init__(self, crowd: Crowd, person: Person, browser: Browser, chromium: Chromium) -> None:
        self._crowd = crowd
        self._person = person
        self._chromium = chromium
        name, _, value = person.cookie.partition("=")
        context = browser.new_context(base_url=crowd.address, reduced_motion="reduce")
        context.set_default_timeout(OPENING_MS)
        context.add_cookies([{"name": name, "value": value, "url": crowd.address}])
        self._inbox_page, self._run_page = context.new_page(), context.new_page()
        self._tokens: dict[Page, str] = {}
        self.inbox = Inbox(person.name)
        self._shown: Shown | None = None
        self._left_at = 0.0

    def open_inbox(self) -> bool:
        return self._opened(self._inbox_page, "/", "#inbox-count")

    def look(self, *, opens: bool) -> None:
        """Look at both pages once; go on to the next run when all of one is there."""
        if found := self._seen(self._inbox_page, LOOK_AT_INBOX):
            self.inbox.count = found["count"]
            self.inbox.listed = found["news"] + found["rows"]
            self.inbox.reloaded |= found["token"] != self._tokens[self._inbox_page]
        if self._shown is None:
            if opens:
                self._open_next()
        elif self._is_whole(self._shown):
            self._shown.left = True
            self._shown = None

    def _open_next(self) -> None:
        young = list(self._crowd.ledger.runs.values())[-YOUNG:]
        fresh = [one for one in reversed(young) if one.id not in self._chromium.watched]
        best = [one for one in fresh if one.workflow == LONG] or fresh[:1]
        if not best or not self._opened(self._run_page, f"/runs/{best[0].id}/", "#run-events"):
            return
        self._chromium.watched.add(best[0].id)
        self._shown = Shown(best[0].id)
        self._chromium.shown.append(self._shown)
        self._left_at = float("inf")

    def _is_whole(self, shown: Shown) -> bool:
        """Note what the page shows; whether it has come to the end and tells the truth of it."""
        if not (found := self._seen(self._run_page, LOOK)):
            return False
        shown.seqs, shown.ended = found["seqs"], found["ended"]
        shown.rows = {"": found["status"], **found["steps"]}
        shown.reloaded |= found["token"] != self._tokens[self._run_page]
        if not shown.ended:
            return False
        if self._left_at == float("inf"):
            self._left_at = time.monotonic() + BEHIND_SECONDS
        text = self._crowd.page("read a run's page", f"/runs/{shown.run}/", self._person)
        if text is not None and (status := STATUS.search(text)):
            shown.truth = {"": status[1], **dict(ROW.findall(text))}
        is_true = shown.truth == shown.rows and len(shown.seqs) == max(shown.seqs)
        return is_true or time.monotonic() > self._left_at

    def _opened(self, page: Page, path: str, part: str) -> bool:
        """Open a page as a person does, who tries again when no page comes."""
        from playwright.sync_api import Error

        try:
            answer = page.goto(path, wait_until="domcontentloaded")
            if answer is None or answer.status != 200 or page.query_selector(part) is None:
                return False
            self._tokens[page] = token = secrets.token_hex(8)
            page.evaluate("(token) => { window.openedAs = token; }", token)
        except Error:
            return False
        self._crowd.ledger.reply("open a page in Chromium", "200")
        return True

    def _seen(self, page: Page, script: str) -> dict[str, Any]:
        from playwright.sync_api import Error

        try:
            found: dict[str, Any] = page.evaluate(script)
        except Error as error:
            # One that went elsewhere by itself is a page that was reloaded: the token tells.
            self._crowd.ledger.tell(f"Chromium: {str(error)[:200]}")
            return {}
        return found


class Chromium:
    """So many people at browsers, in a thread of their own."""

    def __init__(self, crowd: Crowd, count: int) -> None:
        self._crowd = crowd
        self._persons = crowd.persons[-count:] if count else []
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._sit, daemon=True)
        self.watched: set[str] = set()
        self.shown: list[Shown] = []
        self.inboxes: list[Inbox] = []
        if count and (trouble := find("chromium").trouble):
            raise Missing(trouble)

    def begin(self, seconds: float = 120.0) -> None:
        """Returns when every inbox is open."""
        if not self._persons:
            return
        self._thread.start()
        if not self._ready.wait(seconds):
            raise TimeoutError(f"Chromium did not open its pages within {seconds:.0f} s")

    @property
    def is_settled(self) -> bool:
        """Whether every page of a run was left."""
        return all(one.left for one in self.shown)

    def end(self) -> None:
        """Look once more at everything, and close it."""
        self._closing.set()
        if self._persons:
            self._thread.join(60)

    def _sit(self) -> None:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = find("chromium").address
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            seats = [Seat(self._crowd, one, browser, self) for one in self._persons]
            for seat in seats:
                _again(seat.open_inbox, self._closing)
                self.inboxes.append(seat.inbox)
            self._ready.set()
            while not self._closing.wait(LOOK_SECONDS):
                for seat in seats:
                    seat.look(opens=self._crowd.loading.is_set())
            for seat in seats:
                seat.look(opens=False)
            with suppress(Exception):
                browser.close()


def _again(do: Callable[[], bool], over: threading.Event) -> None:
    while not do() and not over.wait(LOOK_SECONDS):
        pass
