"""Teams of stand-ins: writers that write, reviewers that read, and what each was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runs import TeamSeat, run, stage, workflow
from runs.drivers.memory import RunResult
from runs.kernel.turns import AgentRequest
from runs.testing import mock_seat

Says = Callable[[int, AgentRequest], Any]


def decision(status: str, summary: str = "said", *findings: Any) -> str:
    """A reply with its decision at the end."""
    return f"I looked.\n{json.dumps({'status': status, 'summary': summary, 'findings': findings})}"


class Team:
    """A writer of `draft.md` and its reviewers; each function gets which call it is, from 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: dict[str, list[AgentRequest]] = {}
        self.seats: dict[str, TeamSeat] = {}

    def seat(self, model: str, says: Says, *, tools: tuple[str, ...] = ("Read",)) -> TeamSeat:
        asked = self.calls.setdefault(model, [])

        def reply(request: AgentRequest) -> Any:
            asked.append(request)
            return says(len(asked), request)

        made = mock_seat(model, reply, tools=tools)
        self.seats[model] = made
        return made

    def writer(self, model: str = "alpha-1", file: str = "draft.md") -> TeamSeat:
        def write(call: int, _request: AgentRequest) -> str:
            (self.folder / file).write_text(f"draft {call}")
            return decision("pass", f"build {call}")

        return self.seat(model, write)

    def reviewer(self, model: str, *passes: int) -> TeamSeat:
        """One that accepts in these of its calls, and has one finding in the others."""

        def review(call: int, _request: AgentRequest) -> str:
            if call in passes:
                return decision("pass", f"good {call}")
            return decision("revise", f"no {call}", {"evidence": f"{model} finding {call}"})

        return self.seat(model, review)

    def count(self, model: str) -> int:
        return len(self.calls.get(model, []))

    def reviewed(self, *reviewers: TeamSeat, refine: int = 1, **more: Any) -> Any:
        """A workflow of one reviewed stage."""
        roles: Mapping[str, Any] = {"write": self.writer(), "review": list(reviewers)}
        keys = {"agent": "write", "writes": ["draft.md"], "reviewed_by": "review"}
        return workflow(
            "team",
            brief=more.pop("brief", "Write a draft."),
            roles=roles,
            stages=[stage("write", **{**keys, "refine": refine, **more})],
        )


def go(team: Team, job: Any, **options: Any) -> RunResult:
    """Run it in the team's folder."""
    return run(job, cwd=team.folder, **options)


def ends(result: RunResult) -> dict[str, str]:
    """How each stage ended."""
    data: Any = result.outcome.data
    return {name: outcome["status"] for name, outcome in data.items()}


def of_stage(result: RunResult, name: str = "write") -> Any:
    """The outcome of a stage, as the workflow's own holds it."""
    data: Any = result.outcome.data
    return data[name]
