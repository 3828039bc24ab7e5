"""The page's server: this machine only, and only for whoever was given its address.

Every request has to name the bound address as its host and carry the token of the address in its
path. The token keeps out other people of this machine; host and origin keep out other pages of
the same browser. The only thing anybody can do here is answer a question (gates.md G183).
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from runs.drivers.monitor import answers, assets
from runs.drivers.monitor.view import MonitorView
from runs.drivers.ports import Callbacks

logger = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
MAX_BODY: Final = 64 * 1024
_DRAINED: Final = 1024 * 1024
# How long taking the page down may take.
_POLL_SECONDS: Final = 0.1
_JSON: Final = "application/json"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Monitor:
    """A page that is up: its address, and the end of it."""

    def __init__(self, view: MonitorView, client: Callbacks) -> None:
        token = secrets.token_urlsafe(24)
        self._server = _Server(view, client, token)
        self.url = f"{self._server.origin}/{token}/"
        # The thread ends with the process: the page never keeps one alive (runs.md R290).
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="monitor", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Take the page down; a second time does nothing."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __repr__(self) -> str:
        # The address lets its holder answer: it is not for logs.
        return f"<Monitor on {self._server.origin}>"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, view: MonitorView, client: Callbacks, token: str) -> None:
        super().__init__((HOST, 0), _Handler)
        self.view = view
        self.client = client
        self.token = token
        self.address = f"{HOST}:{self.server_port}"
        self.origin = f"http://{self.address}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A request that broke off is nobody's concern."""
        logger.debug("page request broke off client=%s", client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "obversa"
    sys_version = ""
    timeout = 30

    def handle_one_request(self) -> None:
        """Read one request and answer it, whatever its method."""
        self.raw_requestline = self.rfile.readline(65_537)
        if len(self.raw_requestline) > 65_536:
            self.requestline = self.request_version = self.command = ""
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
            return
        self.close_connection = True
        if self.raw_requestline and self.parse_request():
            self._answer()
            self.wfile.flush()

    def _answer(self) -> None:
        if not self._is_from_here():
            self._refuse(HTTPStatus.FORBIDDEN, "This page answers only to its own address.")
            return
        path = self.path.partition("?")[0]
        _, token, *rest = path.split("/", 2) if path.count("/") > 1 else ("", "", "")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
            return
        self._route("/".join(rest))

    def _is_from_here(self) -> bool:
        """Neither another name for this machine nor another page may send a request."""
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") == self.server.address
            and origin in (None, self.server.origin)
            and site in ("none", "same-origin")
        )

    def _route(self, name: str) -> None:
        if name == "answer":
            if self._has_method("POST"):
                self._post_answer()
            return
        found = assets.asset(name)
        if name != "state" and found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        elif self._has_method("GET", "HEAD"):
            if found is None:
                self._send_json(HTTPStatus.OK, self.server.view.state())
            else:
                self._send(HTTPStatus.OK, found.content, found.media_type)

    def _has_method(self, *methods: str) -> bool:
        if self.command in methods:
            return True
        allowed = {"Allow": ", ".join(methods)}
        self._drain()
        told = answers.refused(HTTPStatus.METHOD_NOT_ALLOWED, f"Use {' or '.join(methods)}.")
        self._send_json(*told, headers=allowed)
        return False

    def _post_answer(self) -> None:
        if self.headers.get_content_type() != _JSON:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "An answer is application/json.")
            return
        length = self._length()
        if length is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "The request does not say how long it is.")
        elif length > MAX_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "An answer holds at most 64 KiB.")
        else:
            self._send_json(*answers.answer(self.server.client, self.rfile.read(length)))

    def _length(self) -> int | None:
        given = self.headers.get("Content-Length", "")
        return int(given) if given.isascii() and given.isdigit() else None

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._drain()
        self._send_json(*answers.refused(status, reason))

    def _drain(self) -> None:
        """Read what was sent, so that the refusal is heard; but not without end."""
        self.rfile.read(min(self._length() or 0, _DRAINED))

    def _send_json(
        self, status: HTTPStatus, value: Any, *, headers: dict[str, str] | None = None
    ) -> None:
        content = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")
        self._send(status, content, _JSON, headers=headers)

    def _send(
        self,
        status: HTTPStatus,
        content: bytes,
        media_type: str,
        *,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Nothing: a line would hold the token of the address."""
