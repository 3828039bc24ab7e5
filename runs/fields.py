"""JSON kept as its canonical text, so that digests and U+0000 survive a round trip (G86)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from runs.kernel.jsonable import canonical_json, parse_json

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
        return None if value is None else canonical_json(value)

    def value_to_string(self, obj: models.Model) -> str:
        return canonical_json(self.value_from_object(obj))


def read_stored(text: str) -> Any:
    """Read what `canonical_json` wrote; what is known to be canonical is not checked again."""
    return parse_json(text) if _LONG_NUMBER.search(text) else json.loads(text)
