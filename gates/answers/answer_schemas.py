"""Shapes of the API about answers."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from runs.schemas import EXAMPLE_TIME, Json, Shape


class ResumesAt(Shape):
    """The run goes on by itself at that time."""

    resumes_at: str


class ReceiptShape(Shape):
    """The answer as it was recorded, and what it led to."""

    model_config = ConfigDict(
        title="Receipt",
        json_schema_extra={
            "examples": [
                {
                    "ok": True,
                    "response": {"approved": True},
                    "next": "resumed",
                    "actor": "user:7",
                    "at": EXAMPLE_TIME,
                    "seq": 21,
                    "needed": 1,
                    "responded": 1,
                    "settled": True,
                    "alreadyResolved": False,
                }
            ]
        },
    )

    ok: Literal[True]
    response: dict[str, Json]
    next: Literal["resumed", "recorded"] | ResumesAt
    actor: str
    at: str
    seq: int
    needed: int
    responded: int = Field(description="How many of the answers that are needed are there.")
    settled: bool = Field(description="Whether the question has its own answer.")
    already_resolved: bool = Field(description="This very answer was recorded before.")


class ResponseShape(Shape):
    """One person's answer."""

    response: dict[str, Json]
    actor: str
    at: str
    surface: str
    deputy_for: str | None = Field(description="In whose place it was given.")
    overrides: bool = Field(description="Given by somebody who was not asked, in an emergency.")


class Override(Shape):
    """Who answered over the heads of others, and why."""

    by: str
    reason: str
    at: str
