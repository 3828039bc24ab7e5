"""Who does a stage's work: an engine and the model behind it (engines.md E15, E25-E27)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from runs.kernel.errors import DeclarationError, EngineError
from runs.kernel.jsonable import JSONValue

# Routers that carry other vendors' models: openrouter/<vendor>/<model>.
_ROUTERS: Final = frozenset({"openrouter"})
# Names under which a router picks the model itself.
_CHOOSING: Final = frozenset({"auto", "default", "best"})


class ModelIdentity(NamedTuple):
    """The provider, when the text names one, and the family of the model."""

    provider: str | None
    family: str


def model_identity(text: str) -> ModelIdentity:
    """Who made the model `[provider/]model`; raises EngineError invalid-config (E25, E26).

    The family is the name up to its first hyphen, in small letters.
    """
    parts = text.split("/") if isinstance(text, str) else []
    if not parts or any(not part or re.search(r"\s", part) for part in parts):
        raise _unreadable(text)
    *before, model = parts
    if len(before) > 1 and not (len(before) == 2 and before[0].lower() in _ROUTERS):
        raise _unreadable(text)
    family = model.partition("-")[0].lower()
    if not family or family == "unknown" or (before and family in _CHOOSING):
        raise _unreadable(text)
    return ModelIdentity(before[0].lower() if before else None, family)


def _unreadable(text: object) -> EngineError:
    return EngineError("invalid-config", f"{text!r} names no model of a known family.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatIdentity:
    """What a seat says of the model that sits in it; families are compared, never engines."""

    adapter: str
    provider: str
    model_family: str
    model: str
    tools: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JSONValue]:
        return {
            "adapter": self.adapter,
            "provider": self.provider,
            "modelFamily": self.model_family,
            "model": self.model,
            "tools": list(self.tools),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSeat:
    """An engine (an instance, or a name in the run's engines) and who answers through it."""

    engine: Any
    identity: SeatIdentity
    effort: str | None = None


def seat_identity(seat: Any) -> SeatIdentity:
    """The identity of a seat; raises DeclarationError for one that is not whole (W7, W182)."""
    given = getattr(seat, "identity", None)
    if isinstance(given, SeatIdentity):
        read = {item.name: getattr(given, item.name) for item in fields(given)}
    elif isinstance(given, Mapping):
        read = dict(given)
    else:
        raise DeclarationError(f"{seat!r:.80} is no seat: it has no identity.")
    for name in ("adapter", "provider", "model_family", "model"):
        if not isinstance(read.get(name), str) or not read[name].strip():
            raise DeclarationError(f"the {name} of a seat is text that says something.")
    tools = read.get("tools")
    if not isinstance(tools, list | tuple) or not all(isinstance(one, str) for one in tools):
        raise DeclarationError("the tools of a seat are a list of names.")
    return SeatIdentity(**{**read, "tools": tuple(tools)})


def assert_distinct_seats(seats: Iterable[tuple[str, SeatIdentity]]) -> None:
    """Raise DeclarationError for the first two, by name, of one model family (W9, W182)."""
    seen: dict[str, str] = {}
    for name, identity in seats:
        family = identity.model_family.lower()
        if family in seen:
            raise DeclarationError(
                f"{seen[family]} and {name} are of one model family, {family}: "
                "work is reviewed by another family than the writer's."
            )
        seen[family] = name
