"""The run's own page (runs.md R289-R293, gates.md G180-G189)."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from runs.drivers.callbacks import CallbackClient, create_callback_client
from runs.drivers.errors import RecordDamaged, StorageError
from runs.drivers.memory import RunResult, run
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job

YES = {"approved": True}


def nothing(_ctx: Any) -> None: ...


FLOW = pipeline(
    "release",
    [
        {"name": "build", "job": fn_job("build", nothing), "desc": "Build it"},
        {"name": "ok", "job": approval("ok", "Ship **it**? <script>x</script>")},
        {"name": "ship", "job": fn_job("ship", nothing)},
    ],
)


@dataclass
class Reply:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Page:
    """A run that paused at its question and still shows its page."""

    def __init__(self, client: Any, result: RunResult) -> None:
        self.client = client
        self.result = result
        self.parts = urlsplit(result.monitor.url)
        self.origin = f"http://{self.parts.netloc}"

    def ask(
        self,
        method: str,
        name: str,
        body: bytes | None = None,
        *,
        path: str | None = None,
        **headers: str,
    ) -> Reply:
        connection = http.client.HTTPConnection(self.parts.netloc, timeout=30)
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        try:
            connection.request(
                method, self.parts.path + name if path is None else path, body, given
            )
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()

    def state(self) -> Any:
        reply = self.ask("GET", "state")
        assert reply.status == 200
        return reply.json

    def answer(self, response: Any, request_id: str | None = None) -> Reply:
        (pending,) = self.state()["pending"] or [{"requestId": request_id}]
        body = {"requestId": request_id or pending["requestId"], "response": response}
        return self.ask(
            "POST", "answer", json.dumps(body).encode(), Content_Type="application/json"
        )

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.client.history()]


@pytest.fixture
def page() -> Iterator[Page]:
    client = create_callback_client()
    result = run(FLOW, callbacks=client, monitor=True, run_id="release-1")
    yield Page(client, result)
    result.monitor.close()


def test_the_page_is_off_unless_it_is_asked_for() -> None:
    result = run(FLOW)

    assert result.monitor is None
    assert all(event.kind != "monitor" for event in result.events)


def test_its_address_is_one_event_before_the_start(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [event for event in page.result.events if event.kind == "monitor"]

    assert [event.fields for event in told] == [{"url": page.result.monitor.url}]
    assert [event.kind for event in page.result.events[:2]] == ["monitor", "run:start"]
    assert page.parts.hostname == "127.0.0.1"
    assert page.result.monitor.url.endswith("/")
    assert capsys.readouterr().out == ""
    assert page.parts.path not in repr(page.result.monitor)


def test_the_state_tells_of_the_run(page: Page) -> None:
    state = page.state()

    assert (state["runId"], state["name"], state["status"]) == ("release-1", "release", "done")
    assert state["outcome"]["status"] == "paused"
    assert state["nodes"]["build"] == {
        "phase": "done",
        "needs": [],
        "desc": "Build it",
        "runs": 1,
        "outcome": {"status": "pass", "summary": "build"},
    }
    assert state["nodes"]["ok"]["outcome"]["status"] == "paused"
    assert state["nodes"]["ship"] == {"phase": "declared", "needs": ["ok"], "runs": 0}
    assert state["kickbacks"] == []
    assert state["usage"]["unmeasuredCalls"] == 0
    assert isinstance(state["usageSummary"], str)
    assert [event["kind"] for event in state["events"]][-1] == "run:end"
    (pending,) = state["pending"]
    assert set(pending) == {"requestId", "decisionText", "input", "responseSchema"}
    assert pending["input"] == {"build": "build"}


def test_the_state_of_a_run_at_work() -> None:
    seen: list[Any] = []
    addresses: list[str] = []

    def work(_ctx: Any) -> None:
        parts = urlsplit(addresses[0])
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        connection.request("GET", parts.path + "state")
        seen.append(json.loads(connection.getresponse().read()))
        connection.close()

    def note(event: Any) -> None:
        if event["kind"] == "monitor":
            addresses.append(event["url"])

    result = run(dag("g", {"a": fn_job("a", work)}), monitor=True, on_event=note)
    result.monitor.close()

    (state,) = seen
    assert (state["status"], state["nodes"]["a"]["phase"]) == ("running", "running")
    assert "outcome" not in state


def test_an_answer_is_claimed_and_submitted_as_the_page(page: Page) -> None:
    reply = page.answer({**YES, "note": "go"})

    assert (reply.status, reply.json) == (200, {"ok": True, "response": {**YES, "note": "go"}})
    assert page.kinds() == ["callback-requested", "callback-claimed", "callback-submitted"]
    assert page.client.history()[1]["routerId"] == "monitor"
    assert page.state()["pending"] == []
    assert run(FLOW, callbacks=page.client).outcome.status == "pass"


def test_an_answer_on_the_page_continues_a_run_that_waits() -> None:
    client = create_callback_client()
    replies: list[Reply] = []

    def answer_it(url: str) -> None:
        page = Page.__new__(Page)
        page.client, page.parts = client, urlsplit(url)
        while not page.state()["pending"]:
            threading.Event().wait(0.01)
        replies.append(page.answer(YES))

    def note(event: Any) -> None:
        if event["kind"] == "monitor":
            threads.append(threading.Thread(target=answer_it, args=(event["url"],)))
            threads[0].start()

    threads: list[threading.Thread] = []
    result = run(FLOW, callbacks=client, on_callback="wait", monitor=True, on_event=note)
    threads[0].join()
    result.monitor.close()

    assert result.outcome.status == "pass"
    assert replies[0].status == 200


JSON = {"Content_Type": "application/json"}


@pytest.mark.parametrize(
    ("status", "method", "name", "body", "headers"),
    [
        (403, "POST", "answer", b"{}", {**JSON, "Host": "localhost:1"}),
        (403, "GET", "state", None, {"Host": "evil.example"}),
        (403, "POST", "answer", b"{}", {**JSON, "Origin": "https://evil.example"}),
        (403, "POST", "answer", b"{}", {**JSON, "Origin": "null"}),
        (403, "GET", "", None, {"Sec_Fetch_Site": "cross-site"}),
        (404, "GET", "nothing", None, {}),
        (404, "GET", "../state", None, {}),
        (404, "GET", "page/page.js", None, {}),
        (404, "POST", "answer", b'{"requestId":"unknown","response":{}}', JSON),
        (405, "DELETE", "state", None, {}),
        (405, "POST", "state", b"{}", JSON),
        (405, "GET", "answer", None, {}),
        (405, "PUT", "answer", b"{}", JSON),
        (405, "POST", "", b"{}", JSON),
        (400, "POST", "answer", b"not json", JSON),
        (400, "POST", "answer", b"\xff", JSON),
        (400, "POST", "answer", b"[]", JSON),
        (400, "POST", "answer", b"{}", JSON),
        (400, "POST", "answer", b'{"requestId":5}', JSON),
        (413, "POST", "answer", b" " * (64 * 1024 + 1), JSON),
        (415, "POST", "answer", b"{}", {"Content_Type": "text/plain"}),
        (415, "POST", "answer", b"{}", {}),
    ],
)
def test_what_the_page_refuses(
    page: Page, status: int, method: str, name: str, body: Any, headers: dict[str, str]
) -> None:
    reply = page.ask(method, name, body, **headers)

    assert reply.status == status
    assert reply.json["ok"] is False
    assert reply.json["reason"]
    assert page.kinds() == ["callback-requested"]
    if status == 405:
        assert reply.headers["Allow"]


def test_every_request_needs_the_token_of_the_address(page: Page) -> None:
    (pending,) = page.state()["pending"]
    body = json.dumps({"requestId": pending["requestId"], "response": YES}).encode()
    token = page.parts.path.strip("/")
    for path in ("/", "/state", "/answer", f"/{token[:-1]}/state", "/x/answer"):
        assert page.ask("GET", "", path=path).status == 404
        assert page.ask("POST", "", body, path=path, **JSON).status == 404
    assert len(token) >= 32
    assert page.kinds() == ["callback-requested"]


def test_an_answer_that_does_not_fit_frees_the_question(page: Page) -> None:
    unfit: tuple[Any, ...] = ({}, {"approved": "yes"}, [], None, "x")
    for response in unfit:
        reply = page.answer(response)
        assert (reply.status, reply.json["kind"]) == (400, "invalid")
    assert len(page.state()["pending"]) == 1
    assert page.answer(YES).status == 200


def test_a_question_somebody_holds_is_not_there_to_answer(page: Page) -> None:
    (pending,) = page.state()["pending"]
    assert page.client.claim(pending["requestId"], "ada").ok

    assert page.state()["pending"] == []
    assert page.answer(YES, pending["requestId"]).status == 404


class Late(CallbackClient):
    """Somebody else claims between the look and the claim; or the store refuses the answer."""

    how = ""

    def claim(self, request_id: str, router_id: str) -> Any:
        if self.how == "claimed":
            super().claim(request_id, "ada")
        return super().claim(request_id, router_id)

    def submit(self, *given: Any, **more: Any) -> Any:
        if self.how == "refused":
            raise StorageError("STORAGE_LIMIT_EXCEEDED", "the store is full.")
        return super().submit(*given, **more)


@pytest.mark.parametrize(("how", "status"), [("claimed", 409), ("refused", 400)])
def test_a_lost_race_and_a_full_store_are_told(how: str, status: int) -> None:
    client = Late()
    result = run(FLOW, callbacks=client, monitor=True)
    client.how = how
    page = Page(client, result)
    reply = page.answer(YES)
    result.monitor.close()

    assert (reply.status, reply.json["ok"]) == (status, False)
    assert client.list_pending() == [] if how == "claimed" else len(client.list_pending()) == 1


def test_the_page_and_its_files_are_there_and_say_how_they_may_be_used(page: Page) -> None:
    html = page.ask("GET", "")
    assert html.headers["Content-Type"] == "text/html; charset=utf-8"
    text = html.body.decode()
    assert "<script>" not in text
    assert re.search(r"<[^>]*\son\w+=", text) is None
    for name in ("page.js", "form.js", "page.css", "styles.css"):
        reply = page.ask("GET", name)
        assert reply.status == 200
        assert reply.body
    for reply in (html, page.ask("GET", "state"), page.ask("GET", "nothing")):
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"]
        assert reply.headers["Referrer-Policy"] == "no-referrer"
    head = page.ask("HEAD", "state")
    assert (head.status, head.body) == (200, b"")


def test_a_closed_page_is_gone_and_closing_twice_is_fine(page: Page) -> None:
    page.result.monitor.close()
    page.result.monitor.close()

    with (
        pytest.raises(OSError, match="refused"),
        socket.create_connection(("127.0.0.1", int(str(page.parts.port))), timeout=5),
    ):
        pass


def test_a_run_that_breaks_off_takes_its_page_down(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text('{"kind":"dag:end","ts":1,"path":["g"],"outcome":{},"session":1}\n')
    before = threading.active_count()

    with pytest.raises(RecordDamaged):
        run(FLOW, monitor=True, record_to=path, resume=True)
    assert threading.active_count() == before
    # And its record may be taken by the next.
    result = run(FLOW, record_to=path)
    assert result.record_path == str(path)


def test_a_record_of_a_run_with_a_page_names_its_address(tmp_path: Path) -> None:
    result = run(FLOW, monitor=True, record_to=tmp_path / "r")
    result.monitor.close()
    first = json.loads((tmp_path / "r").read_text().splitlines()[0])

    assert (first["kind"], first["url"]) == ("monitor", result.monitor.url)
