"""A web process that is told to stop lets nobody down: all that it holds goes elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings
from django.db import connection

from gates import keys
from runs import record
from tests import factories
from tests.faults.home import address_of
from tests.services import sockets
from tests.services.conftest import ROOT, kill
from tests.services.test_scaled_out import free_ports, session_of

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
NOTICE = "2.5"


class Web:
    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self.process = process

    def get(self, path: str, **options: Any) -> requests.Response:
        return requests.get(f"http://127.0.0.1:{self.port}{path}", timeout=30, **options)

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGTERM)

    def until_refused(self) -> None:
        """Until it takes no connection any more."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                self.get("/healthz")
            except requests.ConnectionError:
                return
            time.sleep(0.05)
        raise AssertionError("It still listens.")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    (port,) = free_ports(1)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
        "DATABASE_URL": address_of(connection.settings_dict),
        "OBVERSA_HOME": str(tmp_path),
        "OBVERSA_SECRET_KEY": settings.SECRET_KEY,
        "OBVERSA_DRAIN_SECONDS": NOTICE,
    }
    log = (tmp_path / "web.log").open("ab")
    process = subprocess.Popen(
        [*(sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "-v", "0"),
         "obversa_site.asgi:application"],
        cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    made = Web(port, process)
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                made.get("/healthz")
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        yield made
    finally:
        kill(process)
        log.close()


def code_of_its_end(socket: sockets.Socket) -> int:
    while True:
        try:
            socket.text()
        except sockets.Closed as closed:
            return closed.code


def test_it_says_that_it_is_leaving_before_it_takes_nothing_more(web: Web) -> None:
    assert web.get("/readyz").json()["checks"]["serving"] == "ok"

    web.stop()
    end = time.monotonic() + 20
    while (ready := web.get("/readyz")).json()["checks"]["serving"] == "ok":
        assert time.monotonic() < end
    alive = web.get("/healthz")

    assert ready.status_code == 503
    assert ready.json()["checks"]["serving"] == "stopping"
    # Who keeps connections open is told with each answer that this one will not stay.
    assert alive.status_code == 200
    assert alive.headers["Connection"] == "close"
    web.until_refused()
    assert web.process.wait(20) == 0


def test_sockets_are_sent_to_another_process_and_streams_end_whole(web: Web) -> None:
    key = keys.create_key("bot", ["read"])[1]
    gate = factories.pending_gate()
    cookie = session_of(factories.user("root", is_superuser=True))
    bearer = {"Authorization": f"Bearer {key}"}
    whole: list[bytes] = []
    waited: list[requests.Response] = []
    stream = web.get(f"/api/v1/runs/{gate.run_id}/stream", headers=bearer, stream=True)
    ended = threading.Thread(target=lambda: whole.append(stream.content))
    head = gate.run.last_seq
    poll = f"/api/v1/runs/{gate.run_id}/events?after={head}&wait=30"
    asks = threading.Thread(target=lambda: waited.append(web.get(poll, headers=bearer)))
    with sockets.opened(web.port, "/ws/inbox/", cookie=cookie, seconds=30) as inbox:
        ended.start()
        asks.start()
        # The poll has to be under way.
        time.sleep(1)
        web.stop()
        code = code_of_its_end(inbox)
    ended.join(30)
    asks.join(30)

    # A code after which the script of the pages comes back (static/js/live.js).
    assert code == 1012
    assert whole[0].count(b"data: ") == head
    assert waited[0].status_code == 200
    assert waited[0].json() == {"items": [], "head": head}
    assert web.process.wait(20) == 0


def test_a_request_that_is_under_way_gets_its_answer(web: Web) -> None:
    gate = factories.pending_gate()
    root = keys.create_key("roots", ["answer", "read"], factories.user("ada"))[1]
    address = f"http://127.0.0.1:{web.port}/api/v1/requests/{gate.pk}/submit"
    body: Any = {"digest": gate.digest, "response": {"approved": True}}
    answered: list[requests.Response] = []

    def answer() -> None:
        headers = {"Authorization": f"Bearer {root}"}
        answered.append(requests.post(address, json=body, headers=headers, timeout=60))

    asks = threading.Thread(target=answer)
    with record.turn(gate.run_id):
        # It waits for the lock of its run.
        asks.start()
        time.sleep(1)
        web.stop()
        web.until_refused()
        assert web.process.poll() is None
    asks.join(30)

    assert answered[0].status_code == 200, answered[0].text
    assert web.process.wait(20) == 0


def test_the_second_signal_stops_it_at_once(web: Web) -> None:
    web.stop()
    end = time.monotonic() + 20
    while web.get("/readyz").json()["checks"]["serving"] == "ok":
        assert time.monotonic() < end

    web.stop()

    assert web.process.wait(10) == 0
