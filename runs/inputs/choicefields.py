"""Fields that offer choices: one or several, and with room for something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError

from runs.inputs.schemafield import UNSET, SchemaField, plain_text
from runs.kernel.jsonable import canonical_json, json_equal
from runs.plaintext import visible

_MAX_BUTTONS: Final = 4
_MAX_RADIOS: Final = 6
OTHER: Final = "other"


class ChoiceField(SchemaField):
    """One of the values an enum lists."""

    def __init__(self, values: list[Any], **facts: Any) -> None:
        self.options = Options(values)
        choices = self.options.choices()
        widget: forms.Widget
        if len(values) <= _MAX_BUTTONS:
            self.widget_kind, widget = "enum_buttons", forms.RadioSelect(choices=choices)
        elif len(values) <= _MAX_RADIOS:
            self.widget_kind, widget = "radios", forms.RadioSelect(choices=choices)
        else:
            self.widget_kind = "select"
            widget = forms.Select(choices=[("", "Choose one"), *choices])
        super().__init__(widget=widget, **facts)

    def value_of(self, given: Any) -> Any:
        return self.options.value_of(given)

    def typed(self, value: Any) -> Any:
        return self.options.key_of(value)


class ManyField(SchemaField):
    """Any of the values an enum lists, as tick boxes."""

    widget_kind = "multi"

    def __init__(self, values: list[Any], **facts: Any) -> None:
        self.options = Options(values)
        choices = self.options.choices()
        super().__init__(widget=forms.CheckboxSelectMultiple(choices=choices), **facts)

    def value_of(self, given: Any) -> list[Any]:
        return [self.options.value_of(key) for key in given]

    def typed(self, value: Any) -> Any:
        listed = value if isinstance(value, list) else []
        return [self.options.key_of(item) for item in listed]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen on the page, and what was written beside Other."""

    keys: tuple[str, ...] = ()
    other: str = ""


if TYPE_CHECKING:
    _Widget = forms.RadioSelect
else:
    _Widget = object


class _WithOther(_Widget):
    """Choices with a text beside the last of them, sent as `<name>-other`."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Chosen:
        listed = data.getlist(name) if hasattr(data, "getlist") else data.get(name) or ()
        keys = (listed,) if isinstance(listed, str) else tuple(listed)
        return Chosen(keys, data.get(f"{name}-{OTHER}") or "")

    def format_value(self, value: Any) -> list[str]:
        return list(value.keys) if isinstance(value, Chosen) else []


class RadiosWithOther(_WithOther, forms.RadioSelect):
    """One of the choices, or the text."""


class TicksWithOther(_WithOther, forms.CheckboxSelectMultiple):
    """Any of the choices, and the text."""


class OtherField(SchemaField):
    """One of the listed texts, or another that somebody writes."""

    widget_kind = "radios_other"
    widget_class: type[RadiosWithOther | TicksWithOther] = RadiosWithOther

    def __init__(self, values: list[str], **facts: Any) -> None:
        self.values = values
        listed = [(str(index), visible(value)) for index, value in enumerate(values)]
        super().__init__(widget=self.widget_class(choices=[*listed, (OTHER, "Other")]), **facts)

    def clean(self, value: Any) -> Any:
        given = value if isinstance(value, Chosen) else Chosen()
        chosen = [self._value(key) for key in given.keys if key != OTHER]
        written = plain_text(given.other).strip()
        if OTHER in given.keys and not written:
            raise ValidationError("Write what else it is.")
        found = self.joined(chosen, written)
        if not found:
            if self.required:
                raise ValidationError("This is required.")
            return UNSET
        return found

    def joined(self, chosen: list[str], written: str) -> str | list[str]:
        """The answer: what was written stands in place of a choice."""
        if chosen and written:
            raise ValidationError("Choose Other for what you wrote, or take the text out.")
        return written or "".join(chosen[:1])

    def typed(self, value: Any) -> Chosen:
        listed = value if isinstance(value, list | tuple) else [value]
        given = [item for item in listed if isinstance(item, str)]
        keys = [str(self.values.index(text)) for text in given if text in self.values]
        others = [text for text in given if text not in self.values]
        return Chosen((*keys, OTHER) if others else tuple(keys), "".join(others[:1]))

    def _value(self, key: str) -> str:
        if not (key.isascii() and key.isdecimal()) or len(key) > 4 or int(key) >= len(self.values):
            raise ValidationError("This is not one of the choices.")
        return self.values[int(key)]


class ManyOtherField(OtherField):
    """Any of the listed texts, and one more that somebody writes."""

    widget_kind = "multi_other"
    widget_class = TicksWithOther

    def joined(self, chosen: list[str], written: str) -> str | list[str]:
        return list(dict.fromkeys([*chosen, written] if written else chosen))


class Options:
    """The values of an enum and the keys a form sends for them.

    Texts stand for themselves; as soon as one value is no text, each is sent as its place.
    """

    def __init__(self, values: list[Any]) -> None:
        keys = values if texts(values) else [str(index) for index in range(len(values))]
        self._values = dict(zip(keys, values, strict=True))

    def choices(self) -> list[tuple[str, str]]:
        return [(key, _shown(value)) for key, value in self._values.items()]

    def value_of(self, key: Any) -> Any:
        if key not in self._values:
            raise ValidationError("This is not one of the choices.")
        return self._values[key]

    def key_of(self, value: Any) -> str | None:
        keys = (key for key, own in self._values.items() if json_equal(own, value))
        return next(keys, None)


def texts(values: list[Any]) -> bool:
    """Whether there are values, all of them texts to read."""
    return bool(values) and all(isinstance(value, str) and value for value in values)


def _shown(value: Any) -> str:
    """A value of an enum as its label."""
    if isinstance(value, str) and value:
        return visible(value)
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return canonical_json(value)
