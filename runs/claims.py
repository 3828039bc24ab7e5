"""Claim tokens: derived from the claim, never stored, known to the claimer alone (design D3)."""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings


def claim_mark(seq: int) -> str:
    """What the record holds in place of the token: which event made the claim."""
    return f"claim-{seq}"


def claim_token(run_id: object, request_id: str, mark: str, router_id: str) -> str:
    """The token of one claim; the same for whoever can derive it, useless after a release."""
    text = "\0".join((str(run_id), request_id, mark, router_id))
    return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:40]


def is_token(given: str, run_id: object, request_id: str, mark: str, router_id: str) -> bool:
    """Whether what was given is the token of that claim."""
    expected = claim_token(run_id, request_id, mark, router_id)
    return hmac.compare_digest(given.encode(), expected.encode())
