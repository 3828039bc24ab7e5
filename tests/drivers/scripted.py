"""A workflow's file that is started again and again, without processes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from runs.drivers.callbacks import CallbackClient, direct_router
from runs.drivers.jsonl import read_record
from runs.drivers.memory import RunResult, run
from runs.kernel.outcomes import Outcome
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.steps import fn_job

YES = {"approved": True}


class Script:
    """A file that is started again and again: its steps count how often they ran."""

    def __init__(self, path: Path) -> None:
        self.path = path / "run.jsonl"
        self.ran: Counter[str] = Counter()
        self.fails: set[str] = set()

    def step(self, name: str) -> Any:
        def work(_ctx: Any) -> Any:
            self.ran[name] += 1
            if name in self.fails:
                return Outcome(status="fail", summary="not this time")
            return Outcome(status="pass", summary=f"{name} {self.ran[name]}", data={"name": name})

        return fn_job(name, work)

    def flow(self, *names: str, **nodes: Any) -> Any:
        made: dict[str, Node] = {}
        before: str | None = None
        for name in names:
            job = approval(name, "Ship it?") if name == "ok" else self.step(name)
            made[name] = Node(job=job, needs=[before] if before else [])
            before = name
        return dag("g", {**made, **nodes})

    def run(self, job: Any, **options: Any) -> RunResult:
        return run(job, record_to=self.path, resume=True, cwd=self.path.parent, **options)

    def kinds(self, session: int) -> list[str]:
        told = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line["kind"] for line in told if line["session"] == session]

    def anchors(self) -> list[dict[str, Any]]:
        events = read_record(self.path).events
        return [dict(event.fields) for event in events if event.kind == "workflow:start"]


def respond(client: CallbackClient, response: Any = YES) -> None:
    (request,) = client.list_pending()
    assert direct_router(client, request, "ada", lambda _request: response).ok
