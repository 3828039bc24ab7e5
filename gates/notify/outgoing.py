"""One POST to another system: to a public address, within a time, following nothing."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult

from gates.notify.addresses import AddressRefused, addresses_of, read_webhook
from gates.notify.errors import NotSent

SECONDS: Final = 10.0
# interactions.md I83: what may pass by itself.
_RETRYABLE: Final = frozenset({408, 409, 429})


def post(
    address: str, body: bytes, headers: Mapping[str, str], *, seconds: float = SECONDS
) -> None:
    """Send the body; raises NotSent unless the other side says 2xx within `seconds`."""
    exchange(address, body, headers, seconds=seconds)


def exchange(
    address: str, body: bytes, headers: Mapping[str, str], *, seconds: float, limit: int = 0
) -> tuple[int, bytes]:
    """Send the body; the status, which is 2xx or NotSent is raised, and the reply.

    One byte more than `limit` of the reply is read, so that what is too long can be told.
    """
    try:
        parts = read_webhook(address)
        until = time.monotonic() + seconds
        with _connected(parts, until) as plain, _cut_off(plain, until):
            status, answer, reply = _exchange(parts, plain, body, headers, limit)
    except AddressRefused as refusal:
        raise NotSent(str(refusal), retryable=False) from None
    except socket.gaierror:
        raise NotSent("The host's name is not known.", retryable=True) from None
    except ssl.SSLCertVerificationError as error:
        raise NotSent(f"The host's certificate: {error.verify_message}.", retryable=False) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotSent(_words(error), retryable=True) from None
    if not 200 <= status < 300:
        raise NotSent(
            f"The host answered {status}.",
            retryable=status in _RETRYABLE or status >= 500,
            hint_ms=hint_ms(answer, datetime.now(UTC)),
        )
    return status, reply


def hint_ms(headers: Mapping[str, str], now: datetime) -> int | None:
    """How long the other side asks to be left alone, if it says (interactions.md I87)."""
    for name, factor in (("retry-after-ms", 1), ("retry-after", 1000)):
        with contextlib.suppress(ValueError, OverflowError):
            if (given := float(headers.get(name, ""))) >= 0:
                return int(given * factor)
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0, int((at - now).total_seconds() * 1000))


def _words(error: Exception) -> str:
    """What went wrong, not in the error's own words: some hold the address."""
    match error:
        case ConnectionRefusedError():
            return "The host refused the connection."
        case TimeoutError():
            return "The host did not answer in time."
        case ssl.SSLError():
            return "No secure connection to the host."
    return "The host did not answer."


@contextlib.contextmanager
def _connected(parts: SplitResult, until: float) -> Iterator[socket.socket]:
    assert parts.hostname is not None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    trouble: OSError = OSError("no address")
    for family, number in addresses_of(parts.hostname, port):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(max(0.01, until - time.monotonic()))
            sock.connect((number, port))
        except OSError as error:
            sock.close()
            trouble = error
            continue
        with sock:
            yield sock
        return
    raise trouble


@contextlib.contextmanager
def _cut_off(plain: socket.socket, until: float) -> Iterator[None]:
    """End the connection when the time is over, however slowly the other side goes on talking."""
    # A handle of its own: TLS takes the first one over.
    plug = plain.dup()

    def pull() -> None:
        with contextlib.suppress(OSError):
            plug.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.01, until - time.monotonic()), pull)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        plug.close()


def _exchange(
    parts: SplitResult,
    plain: socket.socket,
    body: bytes,
    headers: Mapping[str, str],
    limit: int,
) -> tuple[int, dict[str, str], bytes]:
    assert parts.hostname is not None
    sock = plain
    if parts.scheme == "https":
        sock = _tls().wrap_socket(plain, server_hostname=parts.hostname)
    with contextlib.closing(http.client.HTTPConnection(parts.hostname, parts.port)) as connection:
        connection.sock = sock
        path = parts.path or "/"
        connection.request(
            "POST",
            f"{path}?{parts.query}" if parts.query else path,
            body=body,
            headers={**headers, "Content-Type": "application/json", "Connection": "close"},
        )
        response = connection.getresponse()
        told = {name.lower(): value for name, value in response.getheaders()}
        return response.status, told, response.read(limit + 1) if limit else b""


@lru_cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
