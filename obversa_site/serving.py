"""The web server inside `up`, and the first person who may sign in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daphne.server import Server
from django.contrib.auth.models import User

from obversa_site import draining, stopping
from obversa_site.accounts import sign_in_link


def first_administrator() -> User:
    """The oldest administrator; made on the first start, without a password."""
    found = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if found is not None:
        return found
    admin = User(username="admin", is_staff=True, is_superuser=True)
    admin.set_unusable_password()
    admin.save()
    return admin


def link_for(user: User, address: str) -> str:
    """A one-time sign-in link on the address this server has."""
    return address + "/" + sign_in_link(user).split("/", 3)[3]


class CannotListen(Exception):
    """The address is taken, or is none of this machine."""


class _Listening(Server):  # type: ignore[misc]  # daphne tells no types
    """Daphne, which says when its socket is open."""

    def __init__(self, told: Callable[[int], None], **options: Any) -> None:
        super().__init__(**options)
        self._told = told
        self.trouble = ""

    def listen_success(self, port: Any) -> None:
        super().listen_success(port)
        self._told(port.getHost().port)

    def listen_error(self, failure: Any) -> None:
        self.trouble = failure.getErrorMessage()
        self.stop()


def serve(host: str, port: int, told: Callable[[int], None]) -> None:
    """Serve pages and sockets until a signal; `told` gets the port once the socket is open."""
    from obversa_site.asgi import application

    server = _Listening(
        told,
        application=application,
        endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
        signal_handlers=False,
        action_logger=None,
        http_timeout=None,
        ping_interval=20,
        ping_timeout=30,
        websocket_connect_timeout=10,
        application_close_timeout=5,
        server_name="obversa",
    )
    stopping.then(draining.drained(server))
    server.run()
    if server.trouble:
        raise CannotListen(server.trouble)
