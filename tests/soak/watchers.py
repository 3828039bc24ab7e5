"""People's sockets, held as the script of the pages holds them (static/js/live.js, hx-ws)."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.services import sockets
from tests.soak.crowd import Crowd, Person
from tests.soak.ledger import Ledger, Watch

# The page's list of codes after which it comes back; a browser calls a broken connection 1006.
COME_BACK: Final = (1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014, 4000)
FIRST_PAUSE, LONGEST_PAUSE, JITTER = 0.5, 10.0, 0.3
# After its end a page of a run stays open for a while; nothing more may come.
STAY_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 65.0
EVENT: Final = re.compile(r'<li id="event-(\d+)"[^>]* data-kind="([^"]+)"')
COUNT: Final = re.compile(r'data-inbox-count="(\d+)"')


class Held:
    """One socket of a page: opened again and again until whoever looks at it goes away."""

    def __init__(self, crowd: Crowd, person: Person) -> None:
        self.crowd = crowd
        self.person = person
        self.port = int(crowd.address.rpartition(":")[2])
        self.lost = False

    @property
    def ledger(self) -> Ledger:
        return self.crowd.ledger

    def hold(
        self, path: Callable[[], str], got: Callable[[str], None], is_over: Callable[[], bool]
    ) -> int | None:
        """Until it is over; the code with which the server sent this person away, if it did."""
        attempt = 0
        while not is_over():
            try:
                with sockets.opened(
                    self.port, path(), cookie=self.person.cookie, seconds=SILENT_SECONDS
                ) as socket:
                    attempt = 0
                    self.opened()
                    self._read(socket, got, is_over)
            except sockets.Closed as closed:
                self.ledger.reply("socket closed", str(closed.code))
                if closed.code not in COME_BACK:
                    return closed.code
            except sockets.Refused as refused:
                self.ledger.reply("open a socket", str(refused).split()[1])
            except OSError as error:
                self.ledger.reply("socket broken", type(error).__name__)
            if is_over():
                break
            self.lost = True
            pause = min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE)
            attempt += 1
            time.sleep(pause * random.uniform(1 - JITTER, 1 + JITTER))
        return None

    def opened(self) -> None:
        """What a page does once its socket is there."""

    def _read(
        self, socket: sockets.Socket, got: Callable[[str], None], is_over: Callable[[], bool]
    ) -> None:
        while not is_over():
            if text := socket.text_within(1.0):
                got(text)
                self.ledger.saw_something()


class RunPage(Held):
    """Watches one run from its first event to its last, and a little longer."""

    def __init__(self, crowd: Crowd, person: Person, run: str, is_over: Callable[[], bool]) -> None:
        super().__init__(crowd, person)
        self.watch = Watch(run=run)
        self._is_over = is_over
        self._leave_at = float("inf")

    def __call__(self) -> None:
        with self.ledger.lock:
            self.ledger.watches.append(self.watch)
        self.watch.closed = self.hold(self._path, self._got, self._is_done)

    def opened(self) -> None:
        self.watch.connections += 1
        self.ledger.reply("open a socket", "101")

    def _path(self) -> str:
        return f"/ws/runs/{self.watch.run}/?after={max(self.watch.seqs, default=0)}"

    def _got(self, text: str) -> None:
        for seq, kind in EVENT.findall(text):
            self.watch.seqs.append(int(seq))
            if kind == "run:end":
                self.watch.ended = True
                self._leave_at = time.monotonic() + STAY_SECONDS

    def _is_done(self) -> bool:
        return time.monotonic() > self._leave_at or self._is_over()


class InboxPage(Held):
    """The socket every page has; after a break the page is read again, as the page does itself."""

    def __init__(self, crowd: Crowd, person: Person, is_over: Callable[[], bool]) -> None:
        super().__init__(crowd, person)
        self.count: int | None = None
        self.closed: int | None = None
        self._since = int(time.time())
        self._is_over = is_over

    def __call__(self) -> None:
        self.closed = self.hold(lambda: f"/ws/inbox/?since={self._since}", self._got, self._is_over)

    def opened(self) -> None:
        self.ledger.reply("open a socket", "101")
        if self.lost:
            self.lost = False
            threading.Thread(target=self._refresh, daemon=True).start()

    def _refresh(self) -> None:
        if text := self.crowd.page("read the inbox again", "/", self.person):
            self._got(text)

    def _got(self, text: str) -> None:
        if found := COUNT.findall(text):
            self.count = int(found[-1])


class Audience:
    """Everybody's sockets: one of the inbox for each person, and one of a run that they follow."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.closing = threading.Event()
        self.inboxes = [InboxPage(crowd, person, self.closing.is_set) for person in crowd.persons]
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        acts: list[Callable[[], None]] = list(self.inboxes)
        acts += [partial(self._follow, person) for person in self.crowd.persons]
        self._threads = [threading.Thread(target=act, daemon=True) for act in acts]
        for thread in self._threads:
            thread.start()
            time.sleep(0.02)

    def end(self) -> None:
        self.closing.set()
        for thread in self._threads:
            thread.join(30)

    def _follow(self, person: Person) -> None:
        """Open the page of a run that has just begun, one after the other while there is load."""
        while self.crowd.loading.is_set():
            newest = list(self.crowd.ledger.runs)[-8:]
            if not newest:
                time.sleep(0.5)
                continue
            RunPage(self.crowd, person, random.choice(newest), self.closing.is_set)()
