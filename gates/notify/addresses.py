"""Where a message may go: what an address may be, and how it is shown without its secrets."""

from __future__ import annotations

from urllib.parse import urlsplit


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
