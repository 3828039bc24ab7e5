"""Two web processes hear of each other by Redis or by PostgreSQL, and of nothing twice or never."""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
import requests
from django.conf import settings
from django.db import connection

from gates import keys
from gates.models import Request
from runs import record
from runs.models import Run
from tests import factories
from tests.needs import need
from tests.services import sockets
from tests.services.conftest import worker_environment
from tests.services.test_scaled_out import (
    _process,
    _until_it_answers,
    free_ports,
    session_of,
    text_of,
)

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
LISTENING = "SELECT pid FROM pg_stat_activity WHERE application_name = 'obversa bell'"


class Pair:
    """Two web processes on one database."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self._token = ""
        self._token = ""

    def change(self, gate: Request, key: str, number: int) -> int:
        """Claim or release the question through the first process; the number of the event."""
        path = "claim" if number % 2 == 0 else "release"
        body = {} if path == "claim" else {"claimToken": self._token}
        answer = requests.post(
            f"http://127.0.0.1:{self.ports[0]}/api/v1/requests/{gate.pk}/{path}",
            json=body,
            headers={"Authorization": f"Bearer {key}"},
            timeout=30,
        )
        assert answer.status_code == 200, answer.text
        self._token = answer.json().get("claimToken", "")
        gate.run.refresh_from_db()
        return int(gate.run.last_seq)

    def sign_out(self, cookie: str) -> None:
        """End a session through the first process."""
        token = secrets.token_hex(16)
        answer = requests.post(
            f"http://127.0.0.1:{self.ports[0]}/sign-out/",
            data={"csrfmiddlewaretoken": token},
            headers={"Cookie": f"{cookie}; csrftoken={token}"},
            allow_redirects=False,
            timeout=30,
        )
        assert answer.status_code == 302


Start = Callable[..., Pair]


@pytest.fixture
def start(home: Path, broker: str, prefix: str) -> Iterator[Start]:
    """`start(module, **environment)`: the pair, ended with the test."""
    with ExitStack() as running:

        def started(module: str = "tests.services.bell_only", **environment: str) -> Pair:
            ports = free_ports(2)
            told = worker_environment(home, broker, prefix)
            told |= {"OBVERSA_SECRET_KEY": settings.SECRET_KEY, "PGAPPNAME": "obversa web"}
            told |= environment
            for port in ports:
                command = [
                    *(_python(), "-m", "daphne", "-b", "127.0.0.1", "-p", str(port)),
                    f"{module}:application",
                ]
                running.enter_context(_process(command, told, home / "web.log"))
            for port in ports:
                _until_it_answers(port, home)
            return Pair(ports)

        yield started


def _python() -> str:
    import sys

    return sys.executable


@pytest.fixture(params=["redis", "postgresql"])
def pair(request: pytest.FixtureRequest, start: Start) -> Pair:
    if request.param == "redis":
        return start(CHANNEL_REDIS_URL=need("redis"))
    return start(CHANNEL_REDIS_URL="", OBVERSA_BELL="")  # a broker and PostgreSQL are enough


def seqs(text: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'id="event-(\d+)"', text)]


def until(look: Callable[[], Any], *, seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "It did not come to that."
        time.sleep(0.05)
    return found


def listeners() -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"{LISTENING} AND datname = current_database()")
        return [pid for (pid,) in cursor.fetchall()]


def question() -> tuple[Request, str]:
    gate = factories.pending_gate()
    return gate, keys.create_key("adas", ["read", "claim", "answer"], factories.user("ada"))[1]


def test_what_one_process_did_rings_at_the_other(pair: Pair) -> None:
    gate, key = question()
    first = gate.run.last_seq
    cookie = session_of(factories.user("root", is_superuser=True))

    with sockets.opened(
        pair.ports[1], f"/ws/runs/{gate.run_id}/?after={first}", cookie=cookie
    ) as page:
        # What is seen first may be the look with which a page begins.
        seen = ""
        for number in range(6):
            last = pair.change(gate, key, number)
            seen += text_of(page, f'id="event-{last}"')

    assert seqs(seen) == list(range(first + 1, last + 1))


def test_the_end_of_a_session_closes_sockets_of_the_other_process(pair: Pair) -> None:
    gate, key = question()
    root = factories.user("root", is_superuser=True)
    cookie, other = session_of(root), session_of(root)
    run = f"/ws/runs/{gate.run_id}/?after={gate.run.last_seq}"

    with ExitStack() as held:
        mine = [
            held.enter_context(sockets.opened(pair.ports[1], path, cookie=cookie))
            for path in (run, "/ws/inbox/")
        ]
        stays = held.enter_context(sockets.opened(pair.ports[1], run, cookie=other))
        text_of(stays, f'id="event-{pair.change(gate, key, 0)}"')
        text_of(mine[1], "inbox-count")
        pair.sign_out(cookie)

        assert [_ended(one) for one in mine] == [4404, 4401]
        text_of(stays, f'id="event-{pair.change(gate, key, 1)}"')


def _ended(page: sockets.Socket) -> int:
    try:
        while True:
            page.text()
    except sockets.Closed as closed:
        return closed.code


def test_a_listener_that_was_cut_comes_back_and_nothing_is_missed(start: Start) -> None:
    pair = start(CHANNEL_REDIS_URL="", OBVERSA_BELL="postgresql")
    gate, key = question()
    first = gate.run.last_seq
    cookie = session_of(factories.user("root", is_superuser=True))

    with sockets.opened(
        pair.ports[1], f"/ws/runs/{gate.run_id}/?after={first}", cookie=cookie
    ) as page:
        seen = text_of(page, f'id="event-{pair.change(gate, key, 0)}"')
        (before,) = until(listeners)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [before])
        # Nobody hears this one ring; the new listener makes everybody look.
        missed = pair.change(gate, key, 1)
        seen += text_of(page, f'id="event-{missed}"')
        until(lambda: [pid for pid in listeners() if pid != before])
        last = pair.change(gate, key, 2)
        seen += text_of(page, f'id="event-{last}"')

    assert seqs(seen) == list(range(first + 1, last + 1))


def test_without_pages_nobody_listens(start: Start) -> None:
    pair = start(CHANNEL_REDIS_URL="", OBVERSA_BELL="postgresql")
    cookie = session_of(factories.user("root", is_superuser=True))

    with ExitStack() as held:
        for _ in range(5):
            held.enter_context(sockets.opened(pair.ports[0], "/ws/inbox/", cookie=cookie))
        assert len(until(listeners)) == 1

    until(lambda: not listeners())


def test_sockets_outlive_a_redis_that_is_killed_and_started_again(
    start: Start, tmp_path: Path
) -> None:
    server = need("redis-server")  # it is killed here, and the one of the tests must live
    (port,) = free_ports(1)
    command = [server, "--port", str(port), "--save", "", "--dir", str(tmp_path)]
    url = f"redis://127.0.0.1:{port}/0"
    gate, key = question()
    first = gate.run.last_seq
    cookie = session_of(factories.user("root", is_superuser=True))
    with ExitStack() as held:
        own = held.enter_context(_process(command, {}, tmp_path / "redis.log"))
        until(lambda: _pings(url))
        # With clocks: what no bell tells is found two seconds later.
        pair = start("tests.services.web", CHANNEL_REDIS_URL=url)
        path = f"/ws/runs/{gate.run_id}/?after={first}"
        page = held.enter_context(sockets.opened(pair.ports[1], path, cookie=cookie))
        seen = text_of(page, f'id="event-{pair.change(gate, key, 0)}"')
        own.kill()
        own.wait(20)
        seen += text_of(page, f'id="event-{pair.change(gate, key, 1)}"')
        # A page opens without Redis, too.
        late = held.enter_context(sockets.opened(pair.ports[0], path, cookie=cookie))
        text_of(late, f'id="event-{gate.run.last_seq}"')
        held.enter_context(_process(command, {}, tmp_path / "redis.log"))
        until(lambda: _pings(url))
        last = pair.change(gate, key, 2)
        seen += text_of(page, f'id="event-{last}"')
        text_of(late, f'id="event-{last}"')

    assert seqs(seen) == list(range(first + 1, last + 1))


def _pings(url: str) -> bool:
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=1) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def test_a_reader_that_does_not_read_is_cut_off_and_the_others_are_not(
    start: Start, home: Path
) -> None:
    pair = start("tests.services.web", CHANNEL_REDIS_URL="")
    run = factories.make_run()
    cookie = session_of(factories.user("root", is_superuser=True))
    host, path = f"127.0.0.1:{pair.ports[1]}", f"/ws/runs/{run.pk}/?after={run.last_seq}"

    with (
        socket.socket() as deaf,
        sockets.opened(pair.ports[1], path, cookie=cookie) as page,
    ):
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", pair.ports[1]))
        sockets.Socket(deaf).handshake(host, path, cookie, f"http://{host}")
        for number in range(60):
            text_of(page, f'id="event-{much(run, number)}"')
            if "nobody reads" in (home / "web.log").read_text():
                break
        else:
            raise AssertionError("It was not cut off.")
        text_of(page, f'id="event-{much(run, 99)}"')


def much(run: Run, number: int) -> int:
    """So many events that a frame of them is large; the number of the last."""
    with record.turn(run.pk) as turn:
        for part in range(450):
            turn.append("log", (), {"level": "info", "message": f"{number} {part} " + "x" * 390})
        return turn.last_seq
