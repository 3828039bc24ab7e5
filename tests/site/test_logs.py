"""Lines of the log: what each is about, one line each, and nothing that lets somebody in."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from channels.testing import ApplicationCommunicator
from django.test import Client
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from gates import keys
from obversa_site.around import Around, request_id
from obversa_site.logs import LONGEST_ERROR, clean_access_log, logging_config
from runs import fn_job, pipeline, tasks
from runs.models import Attempt
from tests import factories, flows

SECRET = "hunter2-of-the-payload"
Lines = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def _about_nothing() -> Iterator[None]:
    clear_contextvars()
    yield
    clear_contextvars()


@pytest.fixture(params=["text", "json"])
def style(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def lines(style: str) -> Iterator[Lines]:
    """What the installation's own configuration writes from now on."""
    written = io.StringIO()
    handler = _handler(style, written)
    root = logging.getLogger()
    names = ("runs", "gates", "obversa_site", "django.request", "celery")
    before = {name: logging.getLogger(name).level for name in ("", *names)}
    root.addHandler(handler)
    for name in ("", *names):
        logging.getLogger(name).setLevel(logging.INFO)
    yield lambda: written.getvalue().splitlines()
    root.removeHandler(handler)
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def _handler(style: str, into: io.StringIO) -> logging.Handler:
    facts: Any = logging_config(style)["formatters"]["line"]
    made = logging.StreamHandler(into)
    make = facts.pop("()")
    made.setFormatter(make(**facts))
    return made


def said(style: str, line: str, name: str) -> str:
    """What a line says of one fact."""
    if style == "json":
        return str(json.loads(line).get(name, ""))
    found = [part for part in line.split() if part.startswith(f"{name}=")]
    return found[0].partition("=")[2] if found else ""


# --- the request ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("0123456789abcdef", True),
        ("1-5759e988-bd862e3fe1be46a994272793", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("short", False),
        ("", False),
        ("with space here", False),
        ("line\nbreak-here", False),
        ("../../etc/passwd", False),
        ("ünïcödé-is-none", False),
        ("-begins-with-dash", False),
    ],
)
def test_an_id_is_taken_when_it_is_well_formed_and_made_otherwise(given: str, taken: bool) -> None:
    assert (request_id(given) == given) is taken
    assert len(request_id(given)) >= 8


@pytest.mark.django_db
def test_every_response_names_its_request(client: Client) -> None:
    given = client.get("/healthz", headers={"X-Request-ID": "from-the-proxy-1"})
    made = [client.get(path) for path in ("/healthz", "/nowhere/", "/api/v1/runs", "/sign-in/")]

    assert given["X-Request-ID"] == "from-the-proxy-1"
    ids = [answer["X-Request-ID"] for answer in made]
    assert len(set(ids)) == len(ids)


async def test_requests_and_sockets_of_the_server_have_ids_of_their_own() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["type"], get_contextvars()["request_id"]))

    around = Around(app)
    for kind, given in (("http", b"of-a-request"), ("websocket", b"bad one"), ("websocket", b"")):
        scope = {"type": kind, "path": "/ws/inbox/", "headers": [(b"x-request-id", given)]}
        communicator = ApplicationCommunicator(around, scope)
        await communicator.wait()

    assert seen[0] == ("http", "of-a-request")
    assert len({one for _, one in seen}) == 3
    assert all("bad one" not in one for _, one in seen)


@pytest.mark.django_db
def test_lines_of_djangos_own_name_request_actor_run_and_step(
    lines: Lines, style: str, client: Client
) -> None:
    gate = factories.pending_gate()
    ada = factories.ada()
    assert ada.user is not None
    client.force_login(ada.user)
    key = keys.create_key("bot", ["read", "answer"], ada.user)[1]

    client.get(f"/gates/{gate.pk}/claim/", headers={"X-Request-ID": "the-request"})  # 405
    client.post(
        f"/api/v1/requests/{gate.pk}/submit",
        {"digest": "0" * 64, "response": {"approved": True}},
        content_type="application/json",
        headers={"X-Request-ID": "the-refusal", "Authorization": f"Bearer {key}"},
    )

    of_page = next(line for line in lines() if said(style, line, "request_id") == "the-request")
    assert "Method Not Allowed" in of_page
    refused = next(line for line in lines() if said(style, line, "request_id") == "the-refusal")
    assert said(style, refused, "actor") == "key:bot"
    assert said(style, refused, "run_id") == str(gate.run_id)
    assert said(style, refused, "step").split("/")[-1] == "approve"
    assert key not in "".join(lines())


@pytest.mark.django_db
def test_what_one_request_was_about_is_not_said_of_the_next(client: Client) -> None:
    gate = factories.pending_gate()
    ada = factories.ada()
    assert ada.user is not None
    client.force_login(ada.user)
    client.get(f"/gates/{gate.pk}/")
    assert get_contextvars()["run_id"] == str(gate.run_id)

    Client().get("/healthz")

    assert set(get_contextvars()) == {"request_id"}


# --- the worker ----------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_lines_of_a_step_and_of_celery_name_run_step_attempt_and_task(
    lines: Lines, style: str
) -> None:
    def body(ctx: Any) -> str:
        logging.getLogger("somebody.elses").warning("the library of an author speaks")
        return SECRET

    job = pipeline("speech", [{"name": "talks", "job": fn_job("talks", body)}])
    run = flows.start(job, {"password": SECRET}, schema={"type": "object"})
    attempt = Attempt.objects.get(run=run).pk

    tasks.execute.apply((attempt,), throw=True)

    theirs = next(line for line in lines() if "an author speaks" in line)
    celerys = next(line for line in lines() if "succeeded" in line)
    for line in (theirs, celerys):
        assert said(style, line, "run_id") == str(run.pk)
        assert said(style, line, "step").split("/")[-1] == "talks"
        assert said(style, line, "attempt") == str(attempt)
        assert said(style, line, "task") == "runs.execute"
    assert get_contextvars() == {}
    assert SECRET not in "".join(lines())


def test_a_message_takes_the_id_of_its_request_along() -> None:
    headers: dict[str, Any] = {}
    from obversa_site.celery import _take_along

    _take_along(headers=headers)
    assert headers == {}
    bind_contextvars(request_id="the-request")
    _take_along(headers=headers)

    assert headers == {"obversa_request_id": "the-request"}


# --- the line ------------------------------------------------------------------------------------


def test_a_strangers_text_begins_no_line(lines: Lines, style: str) -> None:
    forged = "\n2026-01-01T00:00:00Z [critical ] all is lost [root]\r\n\x1b[31m\u2028x\x85y"
    bind_contextvars(actor=f"key:{forged}")
    try:
        raise ValueError(forged)
    except ValueError:
        logging.getLogger("runs.of.a.test").exception("failed for %s", forged)

    first, *rest = lines()
    assert "failed for" in first
    if style == "json":
        assert rest == []
        assert json.loads(first)["exception"][0]["exc_value"].startswith("\n2026")
    else:
        # A traceback is set in: no line of it looks like one of the log.
        assert rest
        assert all(line.startswith("    ") for line in rest)
    for mark in ("\x1b", "\r", "\u2028", "\x85"):
        assert mark not in "".join(lines())


def test_a_traceback_tells_no_value_of_a_variable(lines: Lines) -> None:
    password = SECRET
    try:
        raise RuntimeError("no")
    except RuntimeError:
        logging.getLogger("runs.of.a.test").exception("failed")

    assert password == SECRET
    assert SECRET not in "".join(lines())
    assert "RuntimeError" in "".join(lines())


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("key obv_0123456789ab_" + "x" * 43 + " used", "x" * 43),
        ("GET /sign-in/link/#MTI.d1ab9z-" + "0a" * 16 + " failed", "0a" * 16),
        ("code=MTI.d1ab9z-" + "0a" * 16, "0a" * 16),
        ("secret obvs_" + "y" * 43 + " used", "y" * 43),
        ('{"claimToken": "' + "5e" * 20 + '"}', "5e" * 20),
        ("claim_token=" + "5e" * 20 + "&x=1", "5e" * 20),
        ("cannot reach postgres://obversa:hunter2@db/obversa", "hunter2"),
        ("redis://:hunter2@cache:6379/0 is away", "hunter2"),
        ("sent Authorization: Bearer abc.def.ghi", "abc.def.ghi"),
    ],
)
def test_what_lets_somebody_in_is_masked_in_lines_and_in_errors(
    lines: Lines, text: str, secret: str
) -> None:
    try:
        raise OSError(text)
    except OSError:
        logging.getLogger("runs.of.a.test").exception("it said %s", text)

    assert secret not in "".join(lines())
    assert "…" in "".join(lines()).replace("\\u2026", "…")


def test_the_access_log_of_the_server_shows_nothing_that_lets_somebody_in() -> None:
    import daphne.access
    from daphne.cli import CommandLineInterface

    assert CommandLineInterface
    clean_access_log()
    written = io.StringIO()
    log = daphne.access.AccessLogGenerator(written)
    key, code, token = "obv_0123456789ab_" + "x" * 43, "MTI.d1ab9z-" + "0a" * 16, "5e" * 20
    told = {"client": "192.0.2.7:1", "status": 404, "size": 9, "method": "GET", "time_taken": 1}
    log("http", "complete", {**told, "path": f"/api/v1/runs?key={key}&claim_token={token}"})
    log("http", "complete", {**told, "path": f"/sign-in/link/?code={code}"})
    log("websocket", "connected", {**told, "path": f"/ws/inbox/?key={key}\nforged"})

    lines = written.getvalue().splitlines()
    assert len(lines) == 3
    assert "/api/v1/runs?key=obv_…" in lines[0]
    assert "192.0.2.7:1" in lines[0]
    for secret in (key, code, token):
        assert secret not in written.getvalue()
    assert sys.modules["daphne.cli"].AccessLogGenerator is daphne.access.AccessLogGenerator


def test_a_line_is_no_document(lines: Lines) -> None:
    try:
        raise ValueError("y" * 1_000_000)
    except ValueError:
        logging.getLogger("runs.of.a.test").exception("z" * 1_000_000)

    assert len("".join(lines())) < 4 * LONGEST_ERROR


def test_json_is_one_object_a_line_with_the_facts_beside_the_text() -> None:
    written = io.StringIO()
    handler = _handler("json", written)
    logger = logging.getLogger("runs.of.another.test")
    logger.addHandler(handler)
    bind_contextvars(run_id="7", request_id="r")
    logger.warning("step lost step=%s", "a/b")
    logger.removeHandler(handler)

    (line,) = written.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("timestamp").endswith("Z")
    assert told == {
        "event": "step lost step=a/b", "level": "warning", "logger": "runs.of.another.test",
        "run_id": "7", "request_id": "r",
    }  # fmt: skip


def test_both_styles_are_settings_that_logging_takes() -> None:
    for style in ("text", "json"):
        logging.config.DictConfigurator(logging_config(style)).configure_formatter(
            logging_config(style)["formatters"]["line"]
        )
