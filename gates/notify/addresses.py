"""Where a message may go: what an address may be, and how it is shown without its secrets.

Whoever may say an address makes this server talk to it. So people choose among services whose
hosts are fixed, webhooks are for those who look after a team, and no message goes to a private
address unless the installation allows it.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

MAX_ADDRESS: Final = 2_000
# Services whose hosts no address can choose.
SCHEMES: Final = (
    "discord", "gchat", "line", "opsgenie", "pagerduty", "pbul", "pover", "prowl", "pushy",
    "slack", "tgram", "webex", "wxteams",
)  # fmt: skip
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
# All that is routed on the internet; outside of it lies what is local, reserved or holds IPv4.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
# Not routed either, which Python's own lists do not say in every version.
_NOWHERE: Final = tuple(
    ipaddress.ip_network(name) for name in ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")
)
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


class AddressRefused(ValueError):
    """A message may not go there; the text says why and holds nothing of the address."""


def schemes() -> tuple[str, ...]:
    """The services that may be used here: the fixed ones, and those the installation adds."""
    return tuple(sorted({*SCHEMES, *settings.OBVERSA_NOTIFY_SCHEMES}))


def scheme_of(address: str) -> str:
    """The part before `://` in small letters, or nothing."""
    return address.partition("://")[0].lower() if "://" in address else ""


def read_webhook(address: str) -> SplitResult:
    """The parts of a webhook's address; raises AddressRefused for one that is none."""
    if len(address) > MAX_ADDRESS or not address.isascii() or not address.isprintable():
        raise AddressRefused("A webhook's address is plain text of at most 2,000 characters.")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise AddressRefused("This is no address of the web.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in address:
        raise AddressRefused("A webhook's address begins with https:// and a host.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("A webhook's address holds no user and password: it is signed.")
    if parts.scheme == "http" and not settings.OBVERSA_NOTIFY_PRIVATE:
        raise AddressRefused("A webhook's address begins with https://.")
    if not _is_host(parts.hostname) or port == 0:
        raise AddressRefused("This is no address of the web.")
    return parts


def _is_host(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _HOST.fullmatch(name) is not None and ".." not in name
    return True


def addresses_of(host: str, port: int) -> list[tuple[int, str]]:
    """The family and number of each address a name has; raises AddressRefused for a private one.

    All must be public, and the caller connects to one of these: a name that is looked up again
    could lead elsewhere.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    numbers = [(int(family), str(where[0])) for family, _, _, _, where in found]
    if not settings.OBVERSA_NOTIFY_PRIVATE:
        for _, number in numbers:
            if not is_public(number):
                raise AddressRefused("The address leads into a private network.")
    return numbers


def is_public(number: str) -> bool:
    """Whether anybody on the internet could be meant by this IP address."""
    try:
        ip = ipaddress.ip_address(number.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64 or (int(ip) >> 32) & 0xFFFFFFFF in _ISATAP:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip not in _UNICAST:
            return False
    if ip.is_multicast or any(ip in network for network in _NOWHERE):
        return False
    return ip.is_global


def masked(address: str) -> str:
    """The address without what lets somebody use it: a scheme, and the host of a webhook."""
    scheme, found, _ = address.partition("://")
    if not found:
        return ""
    if scheme not in ("http", "https"):
        return f"{scheme}://…"
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        host = ""
    return f"{scheme}://{host}/…"
