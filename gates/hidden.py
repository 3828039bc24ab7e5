"""Secrets of other systems, encrypted where the database keeps them.

The key is derived from `OBVERSA_SECRET_KEY`; what lies under one of `OBVERSA_SECRET_KEY_FALLBACKS`,
or plainly from a version before, is read too. `manage.py hide_secrets` writes all of it anew.
"""

from __future__ import annotations

import base64
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    _Text = models.TextField[str, str]
    _Line = models.CharField[str, str]
else:
    _Text, _Line = models.TextField, models.CharField

logger = logging.getLogger(__name__)

MARK: Final = "fernet1:"
# A line of so many characters, each of up to four bytes, fits the column when it is encrypted.
LINE: Final = 200
COLUMN: Final = 1_200


def hide(text: str) -> str:
    """The text under the newest key; nothing stays nothing."""
    return MARK + _box().encrypt(text.encode()).decode() if text else ""


def show(kept: str) -> str:
    """The text that was hidden, or was kept plainly; nothing where no key of ours opens it."""
    if not kept.startswith(MARK):
        return kept
    try:
        return _box().decrypt(kept.removeprefix(MARK)).decode()
    except InvalidToken:
        logger.warning("a secret was kept under another OBVERSA_SECRET_KEY and cannot be read")
        return ""


def is_newest(kept: str) -> bool:
    """Whether it lies under the newest key already, or holds nothing."""
    if not kept.startswith(MARK):
        return not kept
    try:
        _fernet(settings.SECRET_KEY).decrypt(kept.removeprefix(MARK))
    except InvalidToken:
        return False
    return True


def _box() -> MultiFernet:
    return MultiFernet([_fernet(key) for key in (settings.SECRET_KEY, *_older())])


def _older() -> list[str]:
    return list(settings.SECRET_KEY_FALLBACKS)


@lru_cache(maxsize=16)
def _fernet(key: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"obversa kept secrets v1")
    return Fernet(base64.urlsafe_b64encode(derived.derive(key.encode())))


class _Hidden:
    """A text column that is written encrypted and read back as it was."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> str | None:
        return None if value is None else show(value)

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        kept = super().get_db_prep_save(value, connection)  # type: ignore[misc]  # the field has it
        return hide(kept) if isinstance(kept, str) else kept


class HiddenText(_Hidden, _Text):
    """A text of any length."""


class HiddenLine(_Hidden, _Line):
    """A line of `LINE` characters at most, as its validator says."""
