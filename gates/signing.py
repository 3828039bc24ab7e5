"""Signing of the POSTs that leave for other systems, and the check that a receiver makes.

Two headers are sent: `Obversa-Timestamp`, whole seconds since the epoch, and `Obversa-Signature`,
`v1=` and 64 hex digits: HMAC-SHA256 with the shared secret over the timestamp, a dot and the bytes
of the body. The timestamp is signed so that an old message cannot be sent again as a new one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final

TIMESTAMP: Final = "Obversa-Timestamp"
SIGNATURE: Final = "Obversa-Signature"
# How far the receiver's clock and the way of a message may take its timestamp from "now".
WINDOW_SECONDS: Final = 300
MIN_SECRET: Final = 16
_MAX_SIGNATURES: Final = 5


def new_secret() -> str:
    """A secret of 256 random bits, as text for a form or an environment variable."""
    return f"obvs_{secrets.token_urlsafe(32)}"


def signature(secret: str, body: bytes, timestamp: int) -> str:
    """What `Obversa-Signature` holds for this body at this time."""
    signed = str(timestamp).encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def signed_headers(secret: str, body: bytes, timestamp: int) -> dict[str, str]:
    """Both headers for a POST of exactly these bytes; raises ValueError for a short secret."""
    if len(secret) < MIN_SECRET:
        raise ValueError(f"A secret for signing has at least {MIN_SECRET} characters.")
    return {TIMESTAMP: str(timestamp), SIGNATURE: signature(secret, body, timestamp)}


def verify(
    secret: str,
    body: bytes,
    headers: Mapping[str, str],
    now: int,
    window_seconds: int = WINDOW_SECONDS,
) -> bool:
    """Whether somebody who knows the secret sent exactly these bytes within the window.

    While a secret is changed a sender may send several signatures with commas between; one that
    fits is enough. The same message twice within the window is for the receiver to see by its `id`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    stamp = given.get(TIMESTAMP.lower(), "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    if not secret or abs(now - int(stamp)) > window_seconds:
        return False
    wanted = signature(secret, body, int(stamp)).encode()
    found = False
    for one in given.get(SIGNATURE.lower(), "").split(",", _MAX_SIGNATURES)[:_MAX_SIGNATURES]:
        found |= hmac.compare_digest(wanted, one.strip().encode("utf-8", "replace"))
    return found
