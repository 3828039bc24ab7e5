"""Who ends processes: every one of them in turn, in every way, and starts them again."""

from __future__ import annotations

import random
import signal
import threading
import time

from tests.soak.house import House
from tests.soak.ledger import Ledger
from tests.soak.members import Member, NotReady

# How long one is stopped in the middle of what it does; a lease is shorter than the longest.
STALL_SECONDS = (1.0, 9.0)
AWAY_SECONDS = (0.2, 3.0)
WAYS = ("KILL", "KILL", "KILL", "TERM", "STOP")


class Breaker:
    """Ends one process after the other until it is told that it is enough."""

    def __init__(self, house: House, ledger: Ledger, every: float, seed: int) -> None:
        self._house = house
        self._ledger = ledger
        self._every = every
        self._chance = random.Random(seed)
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Strike no more; what was ended runs again when this is over."""
        self._enough.set()
        self._thread.join(180)

    def _go_on(self) -> None:
        waiting: list[str] = []
        # Everybody is killed once before chance decides how they go.
        killed: set[str] = set()
        while not self._enough.wait(self._every * self._chance.uniform(0.6, 1.4)):
            if not waiting:
                waiting = list(self._house.members)
                self._chance.shuffle(waiting)
            name = waiting.pop()
            how = self._chance.choice(WAYS) if name in killed else "KILL"
            killed.add(name)
            member = self._house.members[name]
            if not member.lives:
                self._ledger.tell(f"{name} had ended by itself:\n{member.tail(1500)}")
            self._ledger.struck(name, how)
            try:
                self._strike(member, how)
            except NotReady as error:
                self._ledger.tell(f"{name} did not come back after {how}: {error}")

    def _strike(self, member: Member, how: str) -> None:
        if how == "STOP":
            pids = member.stop()
            time.sleep(self._chance.uniform(*STALL_SECONDS))
            member.signal(signal.SIGCONT, pids)
            return
        if how == "TERM":
            member.ask_to_stop()
        else:
            member.kill()
        time.sleep(self._chance.uniform(*AWAY_SECONDS))
        member.start()
        member.until_ready()
