"""Workflows of seats, whose stand-ins write into the workspace they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runs import TeamSeat, person, stage, workflow
from runs.kernel.turns import AgentRequest
from runs.testing import mock_seat
from tests.shapes.team import decision

FORM = {"id": "lines", "response_schema": {"type": "object"}}
NO = {"feedback": {"line": 1}, "prompt": "make it rhyme", "decision": "changes-requested"}
YES = {"feedback": {}, "prompt": "", "decision": "approved"}


def writer(file: str = "draft.md") -> TeamSeat:
    """One that writes what is new each time, whichever process it is in."""

    def write(request: AgentRequest) -> str:
        assert request.cwd is not None
        draft = Path(request.cwd) / file
        number = int(draft.read_text().split()[1]) + 1 if draft.exists() else 1
        draft.write_text(f"draft {number}")
        return decision("pass", f"build {number}")

    return mock_seat("alpha-1", write)


def reviewer(model: str, *passes: int) -> TeamSeat:
    calls: list[int] = []

    def review(_request: AgentRequest) -> str:
        calls.append(1)
        number = len(calls)
        if number in passes:
            return decision("pass", f"good {number}")
        return decision("revise", f"no {number}", {"evidence": f"finding {number}"})

    return mock_seat(model, review)


def reviewed(*passes: int, refine: int = 2) -> Any:
    """A stage that a panel reads, and a command that may send it back."""
    roles = {"w": writer(), "r": [reviewer("beta-1", *passes), reviewer("gamma-1", *passes)]}
    return workflow(
        "team",
        brief="Write a draft.",
        roles=roles,
        stages=[
            stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=refine),
            stage("test", run=["grep", "-q", "draft 3", "draft.md"], sends_back_to="write"),
        ],
    )


def by_a_person() -> Any:
    return workflow(
        "team",
        brief="Write a draft.",
        roles={"w": writer(), "p": person("Good?", interaction=FORM), "lead": person("Ship it?")},
        stages=[
            stage("write", agent="w", writes=["draft.md"], reviewed_by="p"),
            stage("ok", input="lead", sends_back_to="write"),
        ],
    )


def by_a_panel_stage() -> Any:
    return workflow(
        "team",
        brief="Write a draft.",
        roles={"w": writer(), "r": [reviewer("beta-1", 2)]},
        stages=[
            stage("write", agent="w", writes=["draft.md"]),
            stage("check", fn=lambda _ctx: "checked"),
            stage("review", panel="r", sends_back_to="write"),
        ],
    )
