"""What every field of a form made from a schema has in common."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from runs.kernel.jsonable import JsonValueError, canonical_json, snapshot

UNSET: Final = object()
_MAX_TEXT: Final = 200_000


class SchemaField(forms.Field):
    """A field that yields a JSON value, or UNSET when nothing was given."""

    widget_kind = "text"
    schema_text = ""
    zone = ""

    def value_of(self, given: Any) -> Any:
        """The JSON value of what was typed."""
        raise NotImplementedError  # pragma: no cover - each kind of field says how

    def typed(self, value: Any) -> Any:
        """What the form would hold had this value been typed."""
        return canonical_json(value) if isinstance(value, int | float) else value

    def clean(self, value: Any) -> Any:
        """The value, UNSET for a field left out, or what is wrong in words."""
        if value in (None, "", []):
            if self.required:
                raise ValidationError("This is required.")
            return UNSET
        return self.value_of(value)


def plain_text(given: Any) -> str:
    """The text that was typed, as JSON can hold it."""
    if not isinstance(given, str):
        raise ValidationError("This has to be text.")
    if len(given) > _MAX_TEXT:
        raise ValidationError(f"This can have at most {_MAX_TEXT} characters.")
    try:
        snapshot(given)
    except JsonValueError as error:
        raise ValidationError(f"This cannot be kept: {error.reason}.") from None
    # A browser sends both characters for each end of a line.
    return given.replace("\r\n", "\n")
