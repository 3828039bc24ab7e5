"""JSON kept as its canonical text, so that digests and U+0000 survive a round trip (G86)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from runs.kernel.jsonable import canonical_json, parse_json

if TYPE_CHECKING:
    _Text = models.TextField[Any, Any]
else:
    _Text = models.TextField


class JSONText(_Text):
    """A JSON value in a text column; reads back plain dicts and lists."""

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        return None if value is None else parse_json(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else canonical_json(value)

    def value_to_string(self, obj: models.Model) -> str:
        return canonical_json(self.value_from_object(obj))
