"""Form fields for what a JSON Schema declares; each keeps what was typed until it is right."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from runs.inputs.choicefields import ChoiceField, ManyField, ManyOtherField, OtherField, texts
from runs.inputs.schemafield import SchemaField, plain_text
from runs.kernel.jsonable import (
    MAX_SAFE_INTEGER,
    JSONValue,
    JsonValueError,
    parse_json,
)
from runs.plaintext import visible

_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NO_JSON: Final = re.compile(r"the text is not JSON \((.*)\)")
_LEADING_ZEROS: Final = re.compile(r"^(-?)0+(?=\d)", re.ASCII)
_LONG_NAMES: Final = frozenset({"note", "prompt", "description", "comment", "reason", "feedback"})
_LONG: Final = 1_000


class VerdictField(SchemaField):
    """Yes or no as two radio buttons with neither chosen: false is an answer, unset is not."""

    widget_kind = "boolean"

    def __init__(self, *, yes: str = "Yes", no: str = "No", **facts: Any) -> None:
        choices = [("true", yes), ("false", no)]
        super().__init__(widget=forms.RadioSelect(choices=choices), **facts)

    def value_of(self, given: Any) -> bool:
        if given not in ("true", "false"):
            raise ValidationError("This has to be yes or no.")
        return bool(given == "true")

    def typed(self, value: Any) -> Any:
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else None


class NumberField(SchemaField):
    """A number in a text box, so that what was typed stays until it is right."""

    widget_kind = "number"

    def __init__(self, *, whole: bool, **facts: Any) -> None:
        self.whole = whole
        mode = "numeric" if whole else "decimal"
        widget = forms.TextInput(attrs={"inputmode": mode, "autocomplete": "off"})
        super().__init__(widget=widget, **facts)

    def value_of(self, given: Any) -> int | float:
        text = _LEADING_ZEROS.sub(r"\1", str(given).strip())
        kind = "a whole number" if self.whole else "a number"
        if len(text) > 400 or not _NUMBER.fullmatch(text):
            raise ValidationError(f"This has to be {kind}.")
        number: int | float = float(text)
        if not math.isfinite(number):
            raise ValidationError("This number is too large.")
        if re.fullmatch(r"-?\d+", text):
            number = int(text)
            if abs(number) > MAX_SAFE_INTEGER:
                raise ValidationError(f"This can be {MAX_SAFE_INTEGER} at most.")
        elif self.whole and not float(number).is_integer():
            raise ValidationError("This has to be a whole number.")
        elif self.whole:
            number = int(number)
        return number


class TextField(SchemaField):
    """A line, or several for what people write at length; white space is theirs."""

    def __init__(self, *, long: bool, **facts: Any) -> None:
        self.widget_kind = "long" if long else "text"
        widget: forms.Widget = forms.Textarea(attrs={"rows": 3}) if long else forms.TextInput()
        super().__init__(widget=widget, **facts)

    def value_of(self, given: Any) -> str:
        return plain_text(given)


class DateField(SchemaField):
    """A day, without a time and so without a zone."""

    widget_kind = "date"

    def __init__(self, **facts: Any) -> None:
        super().__init__(widget=forms.DateInput(attrs={"type": "date"}), **facts)

    def value_of(self, given: Any) -> str:
        try:
            return date.fromisoformat(str(given).strip()).isoformat()
        except ValueError:
            raise ValidationError("This has to be a date such as 2026-03-31.") from None


class JsonField(SchemaField):
    """Anything else, as JSON text beside its schema: never a dead end."""

    widget_kind = "json"

    def __init__(self, schema: Mapping[str, Any], **facts: Any) -> None:
        self.schema_text = visible(pretty(schema))
        widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false"})
        super().__init__(widget=widget, **facts)

    def value_of(self, given: Any) -> JSONValue:
        try:
            return parse_json(plain_text(given), max_depth=240)
        except JsonValueError as error:
            broken = _NO_JSON.fullmatch(error.reason)
            told = f"not JSON: {broken[1]}" if broken else f"no use as it is: {error.reason}"
            raise ValidationError(f"This is {told}.") from None

    def typed(self, value: Any) -> Any:
        return pretty(value)


def field_for(name: str, declared: Any, *, required: bool) -> SchemaField:
    """The form field for one declared property."""
    declared = declared if isinstance(declared, Mapping) else {}
    facts: dict[str, Any] = {
        "label": _label(name, declared),
        "required": required,
        "help_text": _line(declared.get("description")),
    }
    field = _made(name, declared, facts)
    if "default" in declared:
        field.initial = field.typed(declared["default"])
    return field


def _made(name: str, declared: Mapping[str, Any], facts: dict[str, Any]) -> SchemaField:
    match declared:
        case {"enum": [*values]} if values:
            return ChoiceField(list(values), **facts)
        case {"type": "array", "items": {"enum": [*values]}} if values:
            return ManyField(list(values), **facts)
        case {"type": "string", "anyOf": [{"enum": [*values]}, {"type": "string"}]} if texts(
            values
        ):
            return OtherField(list(values), **facts)
        case {
            "type": "array",
            "items": {"type": "string", "anyOf": [{"enum": [*values]}, {"type": "string"}]},
        } if texts(values):
            return ManyOtherField(list(values), **facts)
        case {"type": "boolean"}:
            return VerdictField(**facts)
        case {"type": "integer" | "number" as kind}:
            return NumberField(whole=kind == "integer", **facts)
        case {"type": "string", "format": "date"}:
            return DateField(**facts)
        case {"type": "string"}:
            return TextField(long=_is_long(name, declared), **facts)
    return JsonField(declared, **facts)


def pretty(value: Any) -> str:
    """JSON for people to read and change."""
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)


def _is_long(name: str, declared: Mapping[str, Any]) -> bool:
    limit = declared.get("maxLength")
    return name in _LONG_NAMES or (isinstance(limit, int) and limit > _LONG)


def _label(name: str, declared: Mapping[str, Any]) -> str:
    title = declared.get("title")
    if isinstance(title, str) and title.strip():
        return _line(title)
    words = re.sub(r"[_\-\s]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip()
    return visible(
        (words[:1].upper() + words[1:].lower() if words.isascii() else words)[:200] or name
    )


def _line(text: Any) -> str:
    return visible(text.strip()[:500]) if isinstance(text, str) else ""
