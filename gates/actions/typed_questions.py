"""The typed questions of a step as its request holds them, for the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gates.actions import cards
from gates.models import Request
from runs.kernel.questions import PURPOSE
from runs.plaintext import visible


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One question with what was answered, value by value; nothing where it was left out."""

    prompt: str
    values: list[str]


def are_in(row: Request) -> bool:
    """Whether the request is a form of questions that a step put."""
    asked = isinstance(row.input, Mapping) and isinstance(row.input.get("questions"), list)
    return asked and row.routing.get("purpose") == PURPOSE


def subject_of(row: Request) -> Any:
    """What a request is about. The questions are listed until their form is shown."""
    if cards.is_action(row):
        return cards.subject_of(row)
    if not are_in(row):
        return row.input
    about = row.input.get("about")
    prompts = [one["prompt"] for one in row.input["questions"]]
    if row.status != Request.Status.PENDING or len(prompts) < 2:
        return about
    return {"questions": prompts} if about is None else {"questions": prompts, "about": about}


def answered(row: Request, response: Any) -> list[Answered]:
    """The questions in their author's order with their answers; empty for any other request."""
    if not are_in(row) or not isinstance(response, Mapping):
        return []
    return [
        Answered(prompt=visible(one["prompt"]), values=_values(response.get(one["key"])))
        for one in row.input["questions"]
    ]


def _values(given: Any) -> list[str]:
    listed = given if isinstance(given, list) else [given]
    return [visible(value) for value in listed if isinstance(value, str) and value.strip()]
