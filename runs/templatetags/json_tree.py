"""JSON as a tree that folds, written in one go: a template per leaf takes too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from runs.kernel.jsonable import canonical_json
from runs.plaintext import visible

if TYPE_CHECKING:
    from runs.kernel.jsonable import JSONValue

register = template.Library()

LONG_TEXT: Final = 240
LINE_TEXT: Final = 120
TEXT_SHOWN: Final = 20_000
DEEPEST: Final = 40
ENTRIES: Final = 5_000
_OPEN_ENTRIES: Final = 60


class Tree:
    """One drawing; it stops after so many entries and says so."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._left = ENTRIES

    def drawn(self, value: JSONValue) -> str:
        self._draw(None, value, "", is_open=True)
        if self._left <= 0:
            self._out.append(f'<p class="quiet">Cut after {ENTRIES} entries.</p>')
        return "".join(self._out)

    def _draw(self, key: str | None, value: JSONValue, path: str, *, is_open: bool) -> None:
        self._left -= 1
        if isinstance(value, str):
            self._text(key, value, path)
        elif isinstance(value, Mapping | Sequence):
            if path.count("/") >= DEEPEST:
                self._leaf(key, _cut(canonical_json(value), 2_000), path, "deep")
            else:
                self._node(key, value, path, is_open=is_open)
        elif value is None or isinstance(value, bool):
            self._leaf(key, canonical_json(value), path, "null" if value is None else "boolean")
        else:
            self._leaf(key, canonical_json(value), path, "number")

    def _node(
        self,
        key: str | None,
        value: Mapping[str, JSONValue] | Sequence[JSONValue],
        path: str,
        *,
        is_open: bool,
    ) -> None:
        is_object = isinstance(value, Mapping)
        if not value:
            self._leaf(key, "empty object" if is_object else "empty list", path, "null")
            return
        word = "field" if is_object else "item"
        count = f"{len(value)} {word}{'' if len(value) == 1 else 's'}"
        self._out.append(
            f'<details class="json-node"{" open" if is_open else ""}>'
            f'<summary data-path="{escape(visible(path))}">{_key(key)}'
            f'<span class="json-size">{count}</span></summary><ul class="json-list">'
        )
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        few = len(value) <= _OPEN_ENTRIES and path.count("/") < 2
        for name, item in pairs:
            if self._left <= 0:
                break
            inner = str(name).replace("~", "~0").replace("/", "~1")
            self._out.append("<li>")
            self._draw(str(name), item, f"{path}/{inner}", is_open=few)
            self._out.append("</li>")
        self._out.append("</ul></details>")

    def _text(self, key: str | None, value: str, path: str) -> None:
        if len(value) <= LONG_TEXT and "\n" not in value:
            self._leaf(key, visible(value) or "empty text", path, "string")
            return
        shown = visible(value[:TEXT_SHOWN])
        first = _cut(" ".join(shown[: LINE_TEXT * 2].split()), LINE_TEXT)
        rest = len(value) - TEXT_SHOWN
        self._out.append(
            f'<details class="json-node json-text"><summary data-path="{escape(visible(path))}">'
            f'{_key(key)}<span class="json-value" data-kind="string">{escape(first)}</span> '
            f'<span class="json-size">show all</span></summary>'
            f'<pre class="json-long" dir="auto" tabindex="0">{escape(shown)}'
            f"{f'… and {rest} more characters' if rest > 0 else ''}</pre></details>"
        )

    def _leaf(self, key: str | None, text: str, path: str, kind: str) -> None:
        self._out.append(
            f'<span class="json-leaf" data-path="{escape(visible(path))}">{_key(key)}'
            f'<span class="json-value" data-kind="{kind}" dir="auto">{escape(visible(text))}</span>'
            "</span>"
        )


def _key(key: str | None) -> str:
    return "" if key is None else f'<span class="json-key" dir="auto">{escape(visible(key))}</span>'


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


@register.simple_tag
def json_tree(value: JSONValue) -> SafeString:
    """Draw the value as nested lists; every text in it is escaped."""
    return mark_safe(Tree().drawn(value))  # noqa: S308  each text passes through escape above
