"""JSON kept as text, so that digests, U+0000 and the order of a form's fields survive (G86)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from runs.kernel.jsonable import MAX_DEPTH, parse_json, snapshot
from runs.kernel.plain import as_given, as_it_is, is_checked, is_plain

if TYPE_CHECKING:
    _Text = models.TextField[Any, Any]
else:
    _Text = models.TextField

# Only a number this long can mean something else than what json.loads makes of it.
_LONG_NUMBER: Final = re.compile(r"\d{16}")


class JSONText(_Text):
    """A JSON value in a text column; reads back plain dicts and lists."""

    if TYPE_CHECKING:
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else read_stored(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else stored(value)

    def value_to_string(self, obj: models.Model) -> str:
        return stored(self.value_from_object(obj))


class Ready(str):
    """Text that `stored` has made already."""

    __slots__ = ()


def stored(value: Any) -> str:
    """Write a value that is JSON by the rules of digests; raises JsonValueError for any other.

    Keys stay in their author's order: a form shows its fields in the order of its schema. The
    canonical text, which digests are made of, is the same for every order.
    """
    if type(value) is Ready:
        return value
    if is_plain(value, MAX_DEPTH):
        return as_it_is(value)
    return as_given(value if is_checked(value, MAX_DEPTH) else snapshot(value))


def read_stored(text: str) -> Any:
    """Read what `stored` wrote; it was checked then and is not checked again."""
    return parse_json(text) if _LONG_NUMBER.search(text) else json.loads(text)
