"""Loops in a record that goes on: rounds, bodies that are graphs, questions (R228, R229, R250)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.drivers.callbacks import create_callback_client
from runs.drivers.jsonl import read_record
from runs.kernel.conditions import never
from runs.kernel.state import fold
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.loop import loop
from tests.drivers.scripted import Script, respond


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def rounds(script: Script, *names: str, **options: Any) -> Any:
    return loop("l", script.flow(*names), **{"max": 2, "until": never, **options})


def test_a_loop_runs_again_and_takes_over_its_graph_in_the_first_round_only(
    script: Script,
) -> None:
    assert script.run(rounds(script, "a", "b", "c", max=1)).outcome.status == "exhausted"
    assert script.ran == {"a": 1, "b": 1, "c": 1}
    script.run(rounds(script, "a", "b", "c"))
    # The first round took all three over, the second ran them.
    assert script.ran == {"a": 2, "b": 2, "c": 2}


def test_all_rounds_recorded_and_resumed_count_three(script: Script) -> None:
    script.run(rounds(script, "a", "b", "c"))
    assert script.ran == {"a": 2, "b": 2, "c": 2}
    script.run(rounds(script, "a", "b", "c"))
    assert script.ran == {"a": 3, "b": 3, "c": 3}


def test_a_body_that_changed_is_not_taken_over(script: Script) -> None:
    script.run(rounds(script, "a", "b", max=1))
    script.run(rounds(script, "a", "b", "c", max=1))
    assert script.ran == {"a": 2, "b": 2, "c": 1}

    first, second = script.anchors()
    assert first["recordId"] != second["recordId"]
    script.run(rounds(script, "a", "b", "c", max=1))
    assert script.ran == {"a": 2, "b": 2, "c": 1}
    # And back: what the first session did stays gone (R236).
    script.run(rounds(script, "a", "b", max=1))
    assert script.ran == {"a": 3, "b": 3, "c": 1}
    assert fold(read_record(script.path).events).ended is not None


def test_a_loop_that_waits_goes_on_in_the_round_it_reached(script: Script) -> None:
    client = create_callback_client()

    def flow() -> Any:
        body = dag("g", {"a": script.step("a"), "ok": Node(job=approval("ok", "?"), needs="a")})
        return loop("l", body, max=3, until=never)

    assert script.run(flow(), callbacks=client).outcome.status == "paused"
    respond(client)
    # The first round ends with the answer; the second asks about what it made.
    assert script.run(flow(), callbacks=client).outcome.status == "paused"
    assert script.ran == {"a": 2}
    assert client.list_pending()[0].input == {"a": "a 2"}
    kinds = [event.kind for event in read_record(script.path).events]
    assert (kinds.count("loop:start"), kinds.count("loop:iteration")) == (1, 2)


def test_a_waiting_loop_whose_rules_changed_starts_over(script: Script) -> None:
    client = create_callback_client()

    def flow(most: int) -> Any:
        body = dag("g", {"a": script.step("a"), "ok": Node(job=approval("ok", "?"), needs="a")})
        return loop("l", body, max=most, until=never)

    script.run(flow(2), callbacks=client)
    assert script.run(flow(3), callbacks=client).outcome.status == "paused"
    assert script.ran == {"a": 2}
    assert script.run(flow(3), callbacks=client).outcome.status == "paused"
    assert script.ran == {"a": 2}
    assert script.run(flow(3), callbacks=client, params={"n": 2}).outcome.status == "paused"
    assert script.ran == {"a": 3}
