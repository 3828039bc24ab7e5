"""What stands around every request and socket: its id for the log, and how many sockets there are.

The id is taken from `X-Request-ID` when it is well formed, so that the lines of a proxy, of a web
process and of a caller can be laid side by side; otherwise it is made here. The response names it.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest, HttpResponseBase
from structlog.contextvars import bind_contextvars, clear_contextvars

from obversa_site.bodies import App, Receive, Send

if TYPE_CHECKING:
    from obversa_site.middleware import Handler

HEADER: Final = "X-Request-ID"
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
_SCOPE_KEY: Final = "obversa.request_id"


def request_id(given: str | None) -> str:
    """The id that was given, if it is one; a new one otherwise."""
    if given is not None and _WELL_FORMED.fullmatch(given):
        return given
    return uuid.uuid4().hex


class OpenSockets:
    """How many sockets this process holds, by what they show."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def add(self, kind: str, number: int) -> None:
        """Count `number` more of the kind, or fewer."""
        with self._lock:
            self._open[kind] += number

    def by_kind(self) -> dict[str, int]:
        """The open ones, `inbox` and `run`."""
        with self._lock:
            return {kind: self._open[kind] for kind in ("inbox", "run")}


sockets: Final = OpenSockets()


class Around:
    """An ASGI application, each request and socket of which has an id."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        scope = {**scope, _SCOPE_KEY: request_id(given.decode("latin-1"))}
        # The server calls us in a task of its own, whose context ends with it.
        clear_contextvars()
        bind_contextvars(request_id=scope[_SCOPE_KEY])
        if scope["type"] == "http":
            await self._app(scope, receive, send)
            return
        kind = "run" if scope.get("path", "").startswith("/ws/runs/") else "inbox"
        sockets.add(kind, 1)
        try:
            await self._app(scope, receive, send)
        finally:
            sockets.add(kind, -1)


def with_request_id(get_response: Handler) -> Handler:
    """Give each request its id, for the log and in its response."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        known = getattr(request, "scope", {}).get(_SCOPE_KEY)
        if known is None:
            # Nothing stands around it: what the thread did before is not about this request.
            clear_contextvars()
            known = request_id(request.headers.get(HEADER))
            bind_contextvars(request_id=known)
        response = get_response(request)
        response[HEADER] = known
        return response

    return answer
