"""A service on loopback that answers questions, and hands that move the calls to it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.utils import timezone

from gates.models import Request, Router, RouterCall
from gates.routers import calls
from tests import factories

SECRET = "a secret of the service"
ANSWERED = [
    "callback-requested",
    "callback-routed",
    "callback-claimed",
    "callback-submitted",
]
Answer = tuple[int, Any]


@dataclass
class Service:
    """What came in, and what each POST is answered: the last answer goes for all after it."""

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=lambda: [yes()])
    headers: dict[str, str] = field(default_factory=dict)
    during: Callable[[dict[str, Any]], None] = lambda question: None

    @property
    def questions(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


def yes(**more: Any) -> Answer:
    return 200, {"response": {"approved": True}, **more}


@contextlib.contextmanager
def serving() -> Iterator[Service]:
    kept = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.got.append((dict(self.headers), body))
            kept.during(json.loads(body))
            answers = kept.answers
            status, reply = answers.pop(0) if len(answers) > 1 else answers[0]
            sent = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(sent)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}/ask"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()


def router(service: Service, name: str = "risk", **more: Any) -> Router:
    return Router.objects.create(name=name, url=service.url, secret=SECRET, **more)


def asked(name: str = "risk", *, audience: Any = None, **more: Any) -> Request:
    """A question that goes to the router."""
    wanted = audience if audience is not None else {"routers": [name], "users": ["ada"]}
    return factories.external_request(audience=wanted, router=name, **more)


def posted(*, patience: int = 20) -> int:
    """Make every call that is due, and those after it whatever their time; returns how many."""
    made = 0
    for _ in range(patience):
        pending = RouterCall.objects.filter(state=RouterCall.State.PENDING)
        pending.update(next_at=timezone.now() - timedelta(seconds=1))
        found = calls.due()
        if not found:
            return made
        made += sum(calls.make(call) for call in found)
    raise AssertionError("there is always something due")


def state(row: Request) -> tuple[str, int]:
    """State and attempts of the question's only call."""
    call = RouterCall.objects.get(run=row.run_id)
    return call.state, call.attempts


def fresh(row: Request) -> Request:
    """The row as the database has it."""
    return Request.objects.get(pk=row.pk)


def refusals(row: Request) -> list[str]:
    """What the record says kept the question from an answer."""
    found = row.run.events.filter(kind="callback-refused").order_by("seq")
    return [event.payload["reason"] for event in found]
