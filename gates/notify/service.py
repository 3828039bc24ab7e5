"""Chat and push services, through Apprise; one target each: a retry reaches nobody twice."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Final

from gates.notify.addresses import (
    MAX_ADDRESS,
    SCHEMES,
    AddressRefused,
    addresses_of,
    scheme_of,
    schemes,
)
from gates.notify.errors import NotSent
from gates.notify.message import Message

SECONDS: Final = 5.0
# A stranger's text must not call a whole room.
_CALLS: Final = re.compile(r"@(?=everyone|here|channel|all)|<(?=[!@#])", re.IGNORECASE)
# Escaping by a service makes a text longer than we counted.
_MARGIN: Final = 0.8


def read_service(address: str) -> Any:
    """Apprise's object for the address; raises AddressRefused for what may not be used here."""
    scheme = scheme_of(address)
    if len(address) > MAX_ADDRESS or not address.isascii() or not address.isprintable():
        raise AddressRefused("A service's address is plain text of at most 2,000 characters.")
    if scheme not in schemes():
        raise AddressRefused(f"A service's address begins with one of: {', '.join(schemes())}.")
    if "?" in address:
        # Options could name files of this server, other targets or longer waits.
        raise AddressRefused("A service's address takes no options after a question mark.")
    with _listened():
        plugin = _apprise()(address)
    if plugin is None:
        raise AddressRefused(f"This is no address that {scheme} understands.")
    if len(plugin) > 1:
        raise AddressRefused("Give one target for each channel.")
    if scheme not in SCHEMES and getattr(plugin, "host", None):
        # A name that nobody knows leads nowhere, or is no name but a token.
        with contextlib.suppress(socket.gaierror, UnicodeError):
            addresses_of(plugin.host, getattr(plugin, "port", None) or 443)
    return plugin


@lru_cache
def _apprise() -> Callable[[str], Any]:
    """What makes a service of an address; loaded when somebody uses one."""
    with warnings.catch_warnings():
        # Apprise looks for a module that later versions of Python have no more.
        warnings.simplefilter("ignore", DeprecationWarning)
        from apprise import Apprise, AppriseAsset
        from apprise.plugins import N_MGR

        N_MGR.load_modules()  # type: ignore[no-untyped-call]  # it ships half its types
    asset = AppriseAsset(
        async_mode=False, secure_logging=True, http_redirects=False, storage_mode="memory"
    )
    return partial(Apprise.instantiate, asset=asset, suppress_exceptions=True)


def send(address: str, message: Message) -> None:
    """Give the message to the service; raises NotSent when it does not take it."""
    try:
        plugin = read_service(address)
    except AddressRefused as refusal:
        raise NotSent(str(refusal), retryable=False) from None
    plugin.socket_connect_timeout = plugin.socket_read_timeout = SECONDS
    title, body = fitted(message, plugin.title_maxlen, plugin.body_maxlen)
    with _listened() as heard:
        taken = plugin.notify(title=title, body=body, body_format="text")
    if not taken:
        why = _without_secrets(" ".join(heard), address) or "it did not say why"
        raise NotSent(f"The service did not take it: {why}", retryable=True)


def fitted(message: Message, title_limit: int, body_limit: int) -> tuple[str, str]:
    """Title and body within a service's limits; the body keeps the whole link."""
    title = _quiet(message.title)
    room = int(body_limit * _MARGIN)
    if title_limit <= 0:
        # The service has no titles: Apprise puts it on a line above the body.
        title = _cut(title, max(0, room - len(message.url) - 10))
        return title, _quiet_body(message, room - len(title) - 2)
    return _cut(title, title_limit), _quiet_body(message, room)


def _quiet_body(message: Message, limit: int) -> str:
    text = message.text(limit)
    before, found, link = text.rpartition(f"Open: {message.url}")
    return _quiet(before) + found + link


def _quiet(text: str) -> str:
    return _CALLS.sub(lambda mark: f"{mark[0]}\u200b", text)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def _without_secrets(text: str, address: str) -> str:
    for part in sorted(re.split(r"[/@:,]+", address.partition("://")[2]), key=len, reverse=True):
        if len(part) >= 4:
            text = text.replace(part, "…")
    return re.sub(r"\S*://\S*", "…", text)


class _Heard(logging.Handler):
    """What Apprise says in this thread; it says it nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.lines.append(record.getMessage())


@contextlib.contextmanager
def _listened() -> Iterator[list[str]]:
    heard = _Heard()
    log = logging.getLogger("apprise")
    log.addHandler(heard)
    try:
        yield heard.lines
    finally:
        log.removeHandler(heard)
