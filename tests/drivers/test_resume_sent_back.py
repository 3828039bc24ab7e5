"""A process that dies between a send-back and the next build (runs.md R247)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runs import dag, fn_job, kickback, loop, run


def flow(kind: str, ran: Counter[str]) -> Any:
    """A build, by itself or within something else, that is sent back once."""

    def work(ctx: Any) -> str:
        ran["build"] += 1
        return "first" if ctx.last_review is None else f"after: {ctx.last_review.revision.reason}"

    def review(ctx: Any) -> Any:
        return kickback("build", "too long") if ctx.graph.attempt == 1 else None

    step = fn_job("x", work, retry_safe=True)
    made = {"step": step, "graph": dag("inner", {"x": step}), "loop": loop("inner", step)}
    nodes = {
        "build": {"job": made[kind], "retry_safe": True},
        "review": {
            "job": fn_job("review", review, retry_safe=True),
            "needs": "build",
            "accepts_kickback_to": ["build"],
        },
    }
    return dag("g", nodes, max_kickbacks=1)


@pytest.mark.parametrize("kind", ["step", "graph", "loop"])
def test_r247_what_was_sent_back_is_built_again_with_its_review(kind: str, tmp_path: Path) -> None:
    path, ran = tmp_path / "run.jsonl", Counter[str]()
    assert run(flow(kind, ran), record_to=path, cwd=tmp_path).outcome.passed
    assert ran["build"] == 2
    lines = path.read_text().splitlines(keepends=True)
    sent = next(n for n, line in enumerate(lines) if json.loads(line)["kind"] == "dag:kickback")

    for end in (sent + 1, sent + 2):
        path.write_text("".join(lines[:end]))
        again = Counter[str]()
        result = run(flow(kind, again), record_to=path, resume=True, cwd=tmp_path)

        assert (result.outcome.status, again["build"]) == ("pass", 1), end
        assert "after: too long" in json.dumps(result.outcome.to_json())
