"""Keys for programs: made once, shown once, found by prefix and compared by hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.utils import timezone

from gates.errors import KeyRefused
from gates.models import ApiKey, Router
from gates.principals import Principal, is_live

# How long a key lives that a person makes for itself, unless it says otherwise.
PERSONAL_DAYS: Final = 90
MAX_DAYS: Final = 3650
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_KEY: Final = re.compile(r"obv_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NO_HASH: Final = "0" * 64
# Using a key writes its row at most this often.
_USE_NOTED_EVERY: Final = timedelta(minutes=1)


def create_key(
    name: str,
    scopes: Iterable[str],
    user: User | None = None,
    *,
    days: int | None = None,
    expires_at: datetime | None = None,
    router: Router | None = None,
) -> tuple[ApiKey, str]:
    """Make a key; the text is handed out this once and cannot be had again.

    It ends after `days`, 0 for never. Without a word a key of a person ends after 90 days, and one
    of nobody, which an operator made, never.
    """
    if not _NAME.fullmatch(name):
        raise KeyRefused("name", "A key's name is letters, digits, dots, dashes and underscores.")
    wanted = sorted(set(scopes))
    if not wanted or set(wanted) - set(ApiKey.SCOPES):
        raise KeyRefused("scopes", f"A key has one or more of: {', '.join(ApiKey.SCOPES)}.")
    if router is not None and (user is not None or set(wanted) - Principal.ROUTER_SCOPES):
        may = ", ".join(sorted(Principal.ROUTER_SCOPES))
        raise KeyRefused("scopes", f"The key of a router is nobody's, and may only: {may}.")
    if expires_at is None:
        expires_at = _end(PERSONAL_DAYS if days is None and user is not None else days or 0)
    if expires_at is not None and expires_at <= timezone.now():
        raise KeyRefused("expires_at", "A key ends in the future.")
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    made = ApiKey(
        name=name,
        prefix=prefix,
        hash=_hash(secret),
        scopes=wanted,
        user=user,
        expires_at=expires_at,
        router=router,
    )
    # The name is taken or it is not: the insert says so, not a look before it.
    ApiKey.objects.bulk_create([made], ignore_conflicts=True)
    key = ApiKey.objects.filter(prefix=prefix).first()
    if key is None:
        raise KeyRefused("name", f"There is a key named {name} already.")
    return key, f"obv_{prefix}_{secret}"


def _end(days: int) -> datetime | None:
    if not 0 <= days <= MAX_DAYS:
        raise KeyRefused("days", f"A key lives from 1 to {MAX_DAYS} days, or with 0 for ever.")
    return timezone.now() + timedelta(days=days) if days else None


def find_key(plaintext: str) -> ApiKey | None:
    """The live key of this text; an unknown one takes as long as a wrong one."""
    match = _KEY.fullmatch(plaintext)
    prefix, secret = (match[1], match[2]) if match else ("", plaintext)
    key = ApiKey.objects.select_related("user").filter(prefix=prefix).first()
    kept = key.hash if key is not None else _NO_HASH
    same = hmac.compare_digest(kept, _hash(secret))
    if key is None or not same or not is_live(key):
        return None
    if key.user is not None and not key.user.is_active:
        return None
    _note_use(key)
    return key


def revoke(key: ApiKey) -> bool:
    """End the key; False when it had ended before."""
    now = timezone.now()
    ended = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now)
    if ended:
        key.revoked_at = now
    return bool(ended)


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > _USE_NOTED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def _hash(secret: str) -> str:
    # The secret has 256 random bits: nothing is gained by a slow hash.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
