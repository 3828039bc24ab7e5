"""Which model answered each call of an engine: what a review compares families by (runs.md R50)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.kernel.events import Event, Path
from runs.kernel.jsonable import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One call that was answered; `role` and `stage` are those of a workflow's seats."""

    model: str
    path: Path
    session: int
    role: str | None = None
    stage: str | None = None

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"model": self.model, "path": list(self.path)}
        told = {"role": self.role, "stage": self.stage}
        return wire | {name: value for name, value in told.items() if value is not None}


Answers = tuple[Answer, ...]


def plus(answers: Answers, event: Event, session: int) -> Answers:
    """With what an `engine:usage` event tells; a call that failed is no answer."""
    if event.fields.get("failed") is True:
        return answers
    told = {name: event.fields.get(name) for name in ("model", "role", "stage")}
    read: dict[str, Any] = {
        name: value if isinstance(value, str) else None for name, value in told.items()
    }
    read["model"] = read["model"] or ""
    return (*answers, Answer(**read, path=event.path, session=session))


def without(answers: Answers, path: Path, session: int) -> Answers:
    """A graph begins anew: what was answered in it in sessions before counts no longer (R235)."""
    if not any(one.session < session for one in answers):
        return answers
    depth = len(path)
    return tuple(one for one in answers if one.session == session or one.path[:depth] != path)


def told(answers: Answers) -> list[dict[str, JSONValue]]:
    """What `ctx.state` holds of them."""
    return [one.to_json() for one in answers]


def models_of(listed: Any, *, role: str, stage: str, path: list[str] | None = None) -> list[str]:
    """The models that answered in this role for this stage, from what `ctx.state` holds.

    With a `path` only those at that place.
    """
    if not isinstance(listed, Sequence):
        return []
    return [
        str(one.get("model", ""))
        for one in listed
        if isinstance(one, Mapping)
        and (one.get("role"), one.get("stage")) == (role, stage)
        and path in (None, one.get("path"))
    ]
