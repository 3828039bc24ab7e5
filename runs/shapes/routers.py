"""A service that an author sends questions to, by its own address (docs/routers.md).

Most authors name a router that an administrator has set up: `approval(..., router="risk-engine")`.
An address in code is for published workflows alone; nobody gives one over the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.errors import DeclarationError

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_URL: Final = re.compile(r"https?://([A-Za-z0-9][A-Za-z0-9.-]{0,252})(:\d{1,5})?(/[!-~]{0,1500})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRouter:
    """Where questions are posted, as whom they are answered, and where the secret stands."""

    name: str
    url: str
    secret_env: str

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "url": self.url, "secretEnv": self.secret_env}


def http_router(url: str, *, name: str | None = None, secret_env: str) -> HttpRouter:
    """A router at an address; `secret_env` names the variable with the secret that signs.

    Without a `name` it is called like its host, as the audience of a question has to name it.
    """
    address = _URL.fullmatch(url) if isinstance(url, str) else None
    if address is None:
        raise DeclarationError(f"http_router({url!r:.80}) is no address of the web.")
    called = address[1] if name is None else name
    if not isinstance(called, str) or not NAME.fullmatch(called):
        raise DeclarationError(f"http_router has the name {called!r:.80}, which is none.")
    if not isinstance(secret_env, str) or not _VARIABLE.fullmatch(secret_env):
        raise DeclarationError("http_router takes secret_env, the name of an environment variable.")
    return HttpRouter(name=called, url=url, secret_env=secret_env)


def router_name(routing: Mapping[str, Any]) -> str:
    """The router that a question was sent to, as the record says; nothing without one."""
    given = routing.get("router")
    name = given.get("name") if isinstance(given, Mapping) else given
    return name if isinstance(name, str) else ""
