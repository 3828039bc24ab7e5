"""Two web processes behind nginx and workers with their own queues: one product for its users.

The pages, sockets and streams are asked for at nginx's address, with docs/deploy/nginx.conf.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from gates import keys
from gates.models import Request
from runs.models import Run
from tests import factories, flows
from tests.needs import need
from tests.services import flow, sockets
from tests.services.behind import nginx_conf
from tests.services.conftest import ROOT, Worker, kill, worker_environment

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]


class Site:
    """The product at nginx's port, and what it is made of."""

    def __init__(self, port: int, webs: list[subprocess.Popen[bytes]]) -> None:
        self.port = port
        self.webs = webs
        self.address = f"http://127.0.0.1:{port}"

    def api(self, path: str, key: str, body: Any = None, **options: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {key}"} | options.pop("headers", {})
        method = "GET" if body is None else "POST"
        return requests.request(
            method,
            f"{self.address}/api/v1{path}",
            json=body,
            headers=headers,
            timeout=30,
            **options,
        )


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        taken = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]


@pytest.fixture
def site(home: Path, broker: str, prefix: str) -> Iterator[Site]:
    """Two web processes and nginx; they share the database, Redis and the secret key."""
    nginx = need("nginx")
    first, second, port = free_ports(3)
    environment = worker_environment(home, broker, prefix) | {
        "CHANNEL_REDIS_URL": need("redis"),
        # The test makes the sessions, so its key is everybody's.
        "OBVERSA_SECRET_KEY": settings.SECRET_KEY,
        "OBVERSA_BASE_URL": f"http://127.0.0.1:{port}",
    }
    manage = [sys.executable, "manage.py", "collectstatic", "--noinput", "-v", "0"]
    subprocess.run(manage, cwd=ROOT, env=environment, check=True)
    conf = home / "nginx.conf"
    conf.write_text(nginx_conf(home, home / "static", (first, second), port))
    with ExitStack() as running:
        webs = [
            running.enter_context(_process(_daphne(each), environment, home / "web.log"))
            for each in (first, second)
        ]
        command = [nginx, "-c", str(conf), "-p", str(home), "-g", "daemon off;"]
        running.enter_context(_process(command, environment, home / "nginx.log"))
        for each in (first, second, port):
            _until_it_answers(each, home)
        yield Site(port, webs)


def _daphne(port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "--proxy-headers"),
        "tests.services.web:application",
    ]


@contextmanager
def _process(
    command: list[str], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        kill(process)


def _until_it_answers(port: int, home: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if requests.get(f"http://127.0.0.1:{port}/healthz", timeout=2).status_code == 200:
                return
        except requests.RequestException:
            time.sleep(0.1)
    raise AssertionError("\n".join(log.read_text()[-2000:] for log in home.glob("*.log")))


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


def text_of(found: sockets.Socket, wanted: str) -> str:
    """What came until a frame says it."""
    seen = ""
    while wanted not in seen:
        seen += found.text()
    return seen


def test_a_run_is_started_watched_and_answered_through_whichever_process(
    site: Site, start_worker: Worker, home: Path
) -> None:
    key = keys.create_key("bot", ["read", "start"])[1]
    answers = keys.create_key("answers", ["read", "answer"])[1]
    person = factories.user("root", is_superuser=True)
    cookie = session_of(person)
    effect, retry_safe = flow.EFFECTS["asks"]
    flows.offer(flow.main_job("asks", effect, retry_safe=retry_safe))

    with (
        start_worker("-Q", "control,notify"),
        start_worker("-Q", "steps", CHANNEL_REDIS_URL=need("redis")),
    ):
        started = site.api("/runs", key, {"workflow": "asks"})
        assert started.status_code == 201, started.text
        run = Run.objects.get(pk=started.json()["id"])
        streamed: list[dict[str, Any]] = []
        follower = threading.Thread(target=_follow, args=(site, key, run, streamed))
        follower.start()
        # As many sockets as reach both processes.
        with ExitStack() as held:
            pages = [
                held.enter_context(
                    sockets.opened(site.port, f"/ws/runs/{run.pk}/?after=0", cookie=cookie)
                )
                for _ in range(4)
            ]
            asked = _until_asked(site, key, run)
            sent = {"digest": asked["digest"], "response": {"approved": True}}
            answered = site.api(f"/requests/{asked['id']}/submit", answers, sent)
            assert answered.status_code == 200, answered.text
            shown = [text_of(page, 'data-kind="run:end"') for page in pages]
        follower.join(30)

    assert flows.fresh(run).status == "passed"
    assert sorted(flow.effects()) == flow.expected("asks")
    assert [event["seq"] for event in streamed] == list(range(1, run.events.count() + 1))
    assert streamed[-1]["kind"] == "run:end"
    for seen in shown:
        assert all(seen.count(f'id="event-{event["seq"]}"') == 1 for event in streamed)
    served = (home / "web.log").read_text()
    assert "Traceback" not in served


def _follow(site: Site, key: str, run: Run, into: list[dict[str, Any]]) -> None:
    """Read the stream to its end; it ends with the run."""
    with site.api(f"/runs/{run.pk}/stream", key, stream=True) as answer:
        data = (line[6:] for line in answer.iter_lines() if line.startswith(b"data: "))
        into.extend(map(json.loads, data))


def _until_asked(site: Site, key: str, run: Run) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = site.api(f"/requests?runId={run.pk}&status=pending", key).json()["items"]
        if found:
            return dict(found[0])
        time.sleep(0.1)
    raise AssertionError(flows.kinds(run))


def test_files_headers_and_limits_are_as_without_nginx(site: Site) -> None:
    factories.user("ada").set_password("x")
    page = requests.get(f"{site.address}/sign-in/", timeout=10)
    sheets = re.findall(r'href="(/static/[^"]+\.css)"', page.text)

    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert sheets
    sheet = requests.get(f"{site.address}{sheets[0]}", timeout=10)
    assert sheet.status_code == 200
    assert "immutable" in sheet.headers["Cache-Control"]
    assert sheet.headers["Content-Encoding"] == "gzip"
    big = requests.post(
        f"{site.address}/api/v1/requests", data=b"x" * 3_000_000, timeout=30,
        headers={"Authorization": "Bearer none", "Content-Type": "application/json"},
    )  # fmt: skip
    assert (big.status_code, big.json()["error"]["code"]) == (413, "too-large")
    ready = requests.get(f"{site.address}/readyz", timeout=10)
    assert ready.json()["checks"]["database"] == "ok"


def test_what_a_client_says_of_its_own_address_is_dropped(site: Site) -> None:
    factories.user("ada", is_active=True)
    # Ten wrong passwords from one address make the eleventh wait, whatever the client says of it.
    told = [_wrong_password(site, f"203.0.113.{number}") for number in range(22)]

    assert any("Wait" in text or "wait" in text for text in told)


def _wrong_password(site: Site, forged: str) -> str:
    with requests.Session() as browser:
        browser.headers["X-Forwarded-For"] = forged
        browser.get(f"{site.address}/sign-in/", timeout=10)
        sent = {
            "username": "ada", "password": "wrong",
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }  # fmt: skip
        return browser.post(f"{site.address}/sign-in/", data=sent, timeout=10).text


def test_a_socket_of_another_site_is_refused_here_too(site: Site) -> None:
    cookie = session_of(factories.user("ada"))

    with sockets.opened(site.port, "/ws/inbox/", cookie=cookie):
        pass
    for origin in ("http://evil.example.com", "http://127.0.0.1:1"):
        with (
            pytest.raises(sockets.Refused, match="403"),
            sockets.opened(site.port, "/ws/inbox/", cookie=cookie, origin=origin),
        ):
            pass


def test_a_web_process_that_dies_takes_nobody_with_it(site: Site) -> None:
    key = keys.create_key("bot", ["read", "start", "answer"])[1]
    cookie = session_of(factories.user("root", is_superuser=True))
    gate = factories.pending_gate()

    os.kill(site.webs[0].pid, signal.SIGKILL)
    answers = [site.api(f"/requests/{gate.pk}", key).status_code for _ in range(20)]
    with sockets.opened(site.port, f"/ws/runs/{gate.run_id}/?after=0", cookie=cookie) as page:
        sent = {"digest": gate.digest, "response": {"approved": True}}
        root = keys.create_key("roots", ["answer", "read"], factories.user("ada"))[1]
        assert site.api(f"/requests/{gate.pk}/submit", root, sent).status_code == 200
        assert text_of(page, "approve")

    assert answers == [200] * 20
    assert Request.objects.get(pk=gate.pk).status == "answered"
