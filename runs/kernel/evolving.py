"""`dataclasses.replace` for the values of the kernel, which are replaced at every event.

It asks anew each time which fields there are and sets all of them by way of `__init__`. Here a
class is asked once, and what does not change is copied as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

T = TypeVar("T")
_Copy = Callable[[Any, Mapping[str, Any]], Any]


def evolve(value: T, /, **changes: Any) -> T:
    """The same value with some fields changed; raises TypeError for a field that it has not.

    For frozen dataclasses that check nothing when they are made: `__post_init__` is not called.
    """
    made: T = (_copies.get(value.__class__) or _learned(value.__class__))(value, changes)
    return made


def _learned(kind: type) -> _Copy:
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__} checks itself when it is made: use dataclasses.replace.")
    names = frozenset(field.name for field in fields(kind))
    copy = _slot_by_slot(kind) if hasattr(kind, "__slots__") else _all_at_once(names)
    _copies[kind] = copy
    return copy


_copies: Final[dict[type, _Copy]] = {}


def _all_at_once(names: frozenset[str]) -> _Copy:
    """For a class of many fields: its instances keep them in a dict, which is copied as one."""
    new, put = object.__new__, object.__setattr__

    def copy(value: Any, changes: Mapping[str, Any]) -> Any:
        if not names.issuperset(changes):
            odd = ", ".join(sorted(changes.keys() - names))
            raise TypeError(f"{type(value).__name__} has no field {odd!r}.")
        made = new(value.__class__)
        put(made, "__dict__", {**value.__dict__, **changes})
        return made

    return copy


def _slot_by_slot(kind: type) -> _Copy:
    """A function with one line for each field, as the class's own `__init__` has them."""
    names = [field.name for field in fields(kind)]
    puts = {name: getattr(kind, name).__set__ for name in names}
    lines = [
        "def copy(value, changes):",
        " made = new(kind)",
        *(f" put_{name}(made, value.{name})" for name in names),
        " for name in changes:",
        "  if name not in puts: raise TypeError(f'{kind.__name__} has no field {name!r}.')",
        "  puts[name](made, changes[name])",
        " return made",
    ]
    known: dict[str, Any] = {"new": object.__new__, "kind": kind, "puts": puts}
    known |= {f"put_{name}": put for name, put in puts.items()}
    # Nothing but the names of the fields goes into the text.
    exec("\n".join(lines), known)  # noqa: S102
    made: _Copy = known["copy"]
    return made
