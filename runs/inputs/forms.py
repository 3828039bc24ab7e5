"""A form made from a JSON Schema: for the parameters of a workflow, or for an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError

from runs.inputs.choicefields import Chosen
from runs.inputs.formfields import field_for
from runs.inputs.schemafield import UNSET, SchemaField
from runs.inputs.validation import faults_of
from runs.kernel.jsonable import JSONValue, thaw

_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}", re.ASCII)
_NOTES: Final = frozenset({"note"})
MAX_FIELDS: Final = 200


class SchemaBoundField(forms.BoundField):
    """A field on the page, which says how it wants to be drawn."""

    @property
    def widget_kind(self) -> str:
        """Which part of templates/shared/_field.html draws it."""
        return str(getattr(self.field, "widget_kind", "text"))

    @property
    def other_text(self) -> str:
        """What was written beside Other, where the field has it."""
        value = self.value()
        return value.other if isinstance(value, Chosen) else ""


class SchemaForm(forms.Form):
    """One field per property of the schema; the whole value as JSON when it has none.

    `given` fills the form with an earlier answer. The form checks what was typed; what the schema
    says beyond that is checked where the answer is recorded, and comes back by `add_faults`.
    """

    bound_field_class = SchemaBoundField
    whole_name = "response"
    # In front of every name and id on the page: a browser offers an input called `action` or
    # `submit` as a property of its form, in place of the form's own.
    prefix = "f"

    def __init__(
        self,
        schema: Mapping[str, Any],
        data: Any = None,
        *,
        given: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(data, **options)
        self.schema = schema
        self._property_of: dict[str, str] = {}
        properties = schema.get("properties")
        self.is_whole = not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS
        if isinstance(properties, Mapping) and not self.is_whole:
            self._add_fields(properties)
        if not self._property_of and not _takes_nothing(schema):
            self.is_whole = True
            whole = {**schema, "title": "Answer"}
            self.fields[self.whole_name] = field_for(self.whole_name, whole, required=True)
        if given is not None:
            self._fill(given)

    def _add_fields(self, properties: Mapping[str, Any]) -> None:
        required = self.schema.get("required")
        needed = set(required) if isinstance(required, list | tuple) else set()
        for index, (name, declared) in enumerate(properties.items()):
            field = name if _PLAIN_NAME.fullmatch(name) else f"field-{index}"
            self._property_of[field] = name
            self.fields[field] = field_for(name, declared, required=name in needed)

    def _fill(self, given: Mapping[str, Any]) -> None:
        for field, name in self._property_of.items():
            if name in given:
                shown = self.fields[field]
                assert isinstance(shown, SchemaField)
                self.initial[field] = shown.typed(given[name])
        if self.is_whole:
            whole = self.fields[self.whole_name]
            assert isinstance(whole, SchemaField)
            self.initial[self.whole_name] = whole.typed(thaw(given))

    def clean(self) -> dict[str, Any]:
        """Where something is wrong already, say in the same round what else is.

        Only what the schema says of each field by itself: rules between fields would judge by
        what is missing.
        """
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors and not self.is_whole:
            alone = {
                key: self.schema[key]
                for key in ("properties", "$defs", "definitions")
                if key in self.schema
            }
            self.add_faults(
                (name, words)
                for name, words in faults_of(alone, self.response())
                if self.field_of(name) not in (None, *self.errors)
            )
        return cleaned

    def response(self) -> dict[str, Any]:
        """The value as JSON; fields left out are not in it. Only for a valid form."""
        if self.is_whole:
            value = self.cleaned_data[self.whole_name]
            return value if isinstance(value, dict) else {}
        return {
            name: self.cleaned_data[field]
            for field, name in self._property_of.items()
            if self.cleaned_data.get(field, UNSET) is not UNSET and not self._is_blank(field, name)
        }

    def _is_blank(self, field: str, name: str) -> bool:
        value = self.cleaned_data[field]
        return name in _NOTES and isinstance(value, str) and not value.strip()

    def clean_response(self) -> JSONValue:
        """An answer is an object, whatever its schema says (gates.md G28)."""
        value: JSONValue = self.cleaned_data[self.whole_name]
        if self.is_whole and not isinstance(value, dict):
            raise ValidationError('This has to be a JSON object, such as {"approved": true}.')
        return value

    def add_faults(self, faults: Iterable[tuple[str, str]]) -> None:
        """Put what was refused later beside the fields it is about."""
        fields = {name: field for field, name in self._property_of.items()}
        for name, words in faults:
            field = fields.get(name)
            if field is None and self.is_whole:
                field = self.whole_name
            told = words if field is not None or not name else f"{name}: {words}"
            self.add_error(field, told)

    def field_of(self, name: str) -> str | None:
        """The form's name for a property of the schema."""
        return next((field for field, own in self._property_of.items() if own == name), None)


def _takes_nothing(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is False
