"""Dates, errors and cycles in what a step hands over (runs.md R251)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.jsonl import read_record
from runs.drivers.memory import run
from runs.drivers.plain import plain
from runs.kernel.jsonable import snapshot
from runs.kernel.outcomes import Outcome
from runs.shapes.dag import Node, dag
from runs.shapes.steps import fn_job

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOON, "2026-01-31T12:00:00.000Z"),
        (NOON.astimezone(timezone(timedelta(hours=2))), "2026-01-31T12:00:00.000Z"),
        (NOON.replace(tzinfo=None), "2026-01-31T12:00:00.000"),
        (date(2026, 1, 31), "2026-01-31"),
        ({"a": [{"why": ValueError("no"), "n": 1}]}, {"a": [{"n": 1}]}),
        ([1, KeyError("x"), (2, RuntimeError())], [1, [2]]),
        (ValueError("alone"), None),
        ("text", "text"),
    ],
)
def test_dates_become_text_and_errors_are_left_out(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_what_was_checked_before_stays_the_same_object() -> None:
    frozen = snapshot({"a": [1]})

    assert plain(frozen) is frozen


def test_a_step_hands_its_dates_on_and_a_cycle_fails_it_alone(tmp_path: Path) -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    deep: dict[str, Any] = {"one": {"two": {"at": NOON, "error": ValueError("x")}}}
    seen: list[Any] = []
    flow = dag(
        "g",
        {
            "dated": fn_job("dated", lambda _ctx: Outcome(status="pass", data=deep)),
            "cycle": Node(
                job=fn_job("cycle", lambda _ctx: Outcome(status="pass", data=cycle)),
                optional=True,
            ),
            "reads": Node(
                job=fn_job("reads", lambda ctx: seen.append(ctx.needs["dated"].data)),
                needs="dated",
            ),
        },
    )
    result = run(flow, record_to=tmp_path / "r")

    handed_on = {"one": {"two": {"at": "2026-01-31T12:00:00.000Z"}}}
    assert result.outcome.status == "pass"
    assert seen == [handed_on]
    ends = {
        event.path[-1]: event.fields["outcome"]
        for event in read_record(tmp_path / "r").events
        if event.kind == "job:end"
    }
    assert ends["dated"]["data"] == handed_on
    assert (ends["cycle"]["status"], ends["cycle"]["error"]["code"]) == ("fail", "VALIDATION")
