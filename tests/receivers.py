"""The other ends of what is sent, on loopback: a receiver of webhooks, a server that takes mail."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What came in, and what is answered: a status for each POST, the last one for all after it."""

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=lambda: [200])
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """A web server on loopback that keeps every POST."""
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.got.append((dict(self.headers), body))
            kept.before()
            answers = kept.answers
            self.send_response(answers.pop(0) if len(answers) > 1 else answers[0])
            for name, value in kept.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        with _serving(server):
            yield kept


@dataclass
class Mailbox:
    """What a mail server took; `refusals` are answered to the next recipients instead."""

    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


@contextlib.contextmanager
def mail_server() -> Iterator[Mailbox]:
    """As much of an SMTP server as a client needs."""
    box = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline():
                verb = line[:4].upper().strip()
                if verb == b"DATA":
                    self.say("354 go on")
                    self.keep()
                elif verb == b"RCPT" and box.refusals:
                    self.say(box.refusals.pop(0))
                    continue
                self.say("221 bye" if verb == b"QUIT" else "250 fine")
                if verb == b"QUIT":
                    return

        def say(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")

        def keep(self) -> None:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line[1:] if line.startswith(b".") else line)
            found = message_from_bytes(b"".join(lines), policy=policy.default)
            assert isinstance(found, EmailMessage)
            box.got.append(found)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        box.port = server.server_address[1]
        with _serving(server):
            yield box


@contextlib.contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
