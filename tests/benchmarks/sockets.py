"""How long an event takes from its commit to open pages, and what their sockets weigh."""

from __future__ import annotations

import json
import socket
import statistics
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.benchmarks import flows
from tests.benchmarks.rows import Row
from tests.benchmarks.stage import Process, Stage, wait_for
from tests.benchmarks.systems.obversa import person, start
from tests.needs import find

HOST: Final = "127.0.0.1"
MANY: Final = 1000
MEMORY: Final = f"memory of {MANY} idle sockets in one web process"
PER_PERSON: Final = 50
CLIENTS: Final = "tests.benchmarks.socket_clients"
PAGE: Final = "tests.benchmarks.page_watcher"


def frames_of(count: int) -> str:
    """What the row of this many sockets is called."""
    return f"commit to frame, {count} socket{'s' if count > 1 else ''} on a run"


class Watched:
    """A run that waits, the web process that shows it, and the moments of its commits."""

    def __init__(self, stage: Stage) -> None:
        from gates.models import Request

        self.stage = stage
        self.run = start(flows.CYCLE)
        pending = Request.objects.filter(run=self.run, status="pending")
        self.question = wait_for(pending.first)
        self.port = _free_port()
        place = ("-b", HOST, "-p", str(self.port), "-v", "0")
        # A thousand that come at once are not what is measured.
        patience = ("--websocket_connect_timeout", "60")
        self.web = stage.process("daphne", *place, *patience, "obversa_site.asgi:application")
        self.commits: dict[int, float] = {}
        wait_for(self._answers)

    def change(self, count: int, pause: float) -> None:
        """Claim and release the question in turn, one event each."""
        from gates import services

        who = person()
        for number in range(count):
            if number % 2 == 0:
                services.claim(self.question.pk, principal=who)
            else:
                services.release(self.question.pk, principal=who)
            time.sleep(pause)

    def arrivals(self, module: str, cookies: list[str], changes: int, pause: float) -> list[float]:
        """Milliseconds from commit to arrival, of every change at every socket."""
        process = self.opened(module, cookies)
        before = set(self.commits)
        self.change(changes, pause)
        mine = sorted(set(self.commits) - before)
        arrived = {int(seq): moments for seq, moments in _told(process, mine[-1]).items()}
        self.stage.end(process)
        counts = {seq: len(arrived.get(seq, [])) for seq in mine}
        assert set(counts.values()) == {len(cookies)}, f"frames that arrived: {counts}"
        return [(when - self.commits[seq]) * 1000 for seq in mine for when in arrived[seq]]

    def opened(self, module: str, cookies: list[str]) -> Process:
        """A process whose sockets are open."""
        process = self.stage.process(module, talks=True)
        path = f"/ws/runs/{self.run.pk}/?after={self._head()}"
        given = {"host": HOST, "port": self.port, "path": path, "cookies": cookies}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
        if said != "ready\n":
            raise RuntimeError(f"{module} did not open its sockets:\n{self.stage.log()}")
        return process

    def weight(self) -> int:
        """KiB that the web process holds in memory."""
        status = Path(f"/proc/{self.web.pid}/status").read_text()
        return int(
            next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        )

    def _head(self) -> int:
        self.run.refresh_from_db()
        return int(self.run.last_seq)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def measured(stage: Stage, *, changes: int) -> Iterator[Row]:
    """One socket, many, and a page of a browser; one web process for all of them."""
    from django.db import transaction

    from runs import record

    watched = Watched(stage)
    cookies = _cookies(MANY)

    def note(turn: Any) -> None:
        # The first that is called after the commit, before the bell.
        seq = turn.last_seq
        if turn.run.pk == watched.run.pk:
            transaction.on_commit(lambda: watched.commits.setdefault(seq, time.time()))

    record.register_projector(note)
    watched.arrivals(CLIENTS, cookies[:1], 4, 0.1)
    yield _row(frames_of(1), watched.arrivals(CLIENTS, cookies[:1], changes, 0.1))
    yield _memory(watched, cookies)
    for count in (200, MANY):
        yield _row(
            frames_of(count),
            watched.arrivals(CLIENTS, cookies[:count], max(10, changes // 3), count / 1000),
        )
    yield _page(watched, cookies[:1], changes)


def _memory(watched: Watched, cookies: list[str]) -> Row:
    before = watched.weight()
    process = watched.opened(CLIENTS, cookies)
    time.sleep(2)
    each = (watched.weight() - before) / MANY
    watched.stage.end(process)
    time.sleep(2)
    words = f"{each:.0f} KiB each, from {before / 1024:.0f} MiB"
    return Row(what=MEMORY, values=[each * MANY / 1024], unit="MiB", words=words)


def _page(watched: Watched, cookies: list[str], changes: int) -> Row:
    what = "commit to row in a page of Chromium"
    if find_spec("playwright") is None:
        return Row(what=what, words="not measured: playwright is not installed (extra `test`)")
    if trouble := find("chromium").trouble:
        return Row(what=what, words=f"not measured: {trouble}")
    return _row(what, watched.arrivals(PAGE, cookies, changes, 0.1))


def _row(what: str, found: list[float]) -> Row:
    high = statistics.quantiles(found, n=20, method="inclusive")[-1]
    words = f"95 % within {high:.1f} ms, slowest {max(found):.1f} ms"
    return Row(what=what, values=[statistics.median(found)], words=words)


def _cookies(count: int) -> list[str]:
    """One for every socket, of as many people as it takes."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    found: list[str] = []
    for number in range(-(-count // PER_PERSON)):
        client = Client()
        client.force_login(User.objects.create_superuser(f"viewer{number}"))
        name = settings.SESSION_COOKIE_NAME
        found += [f"{name}={client.cookies[name].value}"] * PER_PERSON
    return found[:count]


def _told(process: Process, last: int) -> dict[str, list[float]]:
    """What arrived, once the last event has."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{last}\n")
    process.stdin.flush()
    found: dict[str, list[float]] = json.loads(process.stdout.readline())
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
