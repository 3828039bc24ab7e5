"""The web server inside `up`, and the first person who may sign in."""

from __future__ import annotations

from daphne.server import Server
from django.contrib.auth.models import User

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


def serve(host: str, port: int) -> None:
    """Serve pages and sockets until Ctrl-C or SIGTERM."""
    from obversa_site.asgi import application

    Server(
        application=application,
        endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
        signal_handlers=True,
        action_logger=None,
        http_timeout=None,
        ping_interval=20,
        ping_timeout=30,
        websocket_connect_timeout=10,
        application_close_timeout=5,
        server_name="obversa",
    ).run()
