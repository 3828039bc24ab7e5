"""Which pages may open a socket: this site's own, on its own port."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class SameOrigin:
    """Lets a handshake through whose Origin is the address it was sent to, as for a POST.

    A cookie knows no ports, so a page of another program on this machine would bring it along.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if is_same(origin, host) or origin in settings.CSRF_TRUSTED_ORIGINS:
            return await self._application(scope, receive, send)
        return await WebsocketDenier()(scope, receive, send)


def is_same(origin: str, host: str) -> bool:
    """Whether an Origin header names the host of the Host header, port included."""
    try:
        urlsplit(origin)
    except ValueError:
        return False  # such as http://[::1, on which a reader of addresses fails
    scheme, _, place = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    return bool(host) and port is not None and host in (place, f"{place}{port}")
