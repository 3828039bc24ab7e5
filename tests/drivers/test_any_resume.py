"""Whatever is drawn, and wherever its record breaks off: it is taken up and comes to an end."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from runs.drivers.callbacks import CallbackClient, direct_router, replay_callback_client
from runs.drivers.jsonl import read_record
from runs.drivers.memory import RunResult, run
from runs.kernel.events import CALLBACK_KINDS, EventKind
from runs.kernel.graph import Shape
from runs.kernel.state import fold
from tests.kernel.shapes import shapes
from tests.runs.drawn import World, in_order

pytestmark = pytest.mark.timeout(3600)

drawn = settings(
    max_examples=max(1, settings().max_examples // 8),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _says(response: dict[str, Any], _request: object) -> dict[str, Any]:
    return response


def go(world: World, shape: Shape, path: Path, client: CallbackClient) -> RunResult:
    """Run it, or take it up, with somebody who answers at once."""

    def answer(_: object) -> None:
        for request in client.list_pending():
            reply = {"action": "run-again"} if "reconcile" in request.gate_id else None
            said = reply or world.answer(request.request_id)
            direct_router(client, request, "ada", partial(_says, said))

    return run(
        world.job(shape),
        record_to=path,
        resume=True,
        callbacks=client,
        on_callback="wait",
        on_event=answer,
        cwd=path.parent,
    )


def is_held(lines: list[str]) -> bool:
    """Whether somebody died with a question in hand: that is another test's."""
    told = [one for one in map(json.loads, lines) if one["kind"] in CALLBACK_KINDS]
    last = {one.get("requestId"): one["kind"] for one in told}
    return EventKind.CLAIMED in last.values()


@drawn
@given(shapes(), st.integers(0, 999), st.data())
def test_any_beginning_of_any_record_is_taken_up(
    tmp_path_factory: pytest.TempPathFactory, shape: Shape, seed: int, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("drawn") / "run.jsonl"
    ordered = in_order(shape)
    go(World(seed), ordered, path, replay_callback_client([]))
    lines = path.read_text().splitlines(keepends=True)
    assume(3 < len(lines) < 300)

    for _ in range(2):
        cut = data.draw(st.integers(1, len(lines) - 1))
        while is_held(lines[:cut]):
            cut += 1
        path.write_text("".join(lines[:cut]))
        told = [one for one in read_record(path).events if one.kind in CALLBACK_KINDS]
        client = replay_callback_client([one.callback_wire() for one in told])

        result = go(World(seed), ordered, path, client)

        events = read_record(path).events
        assert fold(events).ended == result.outcome
        assert result.outcome.status != "paused", json.loads(lines[cut - 1])["kind"]
        for scope in fold(events).scopes.values():
            spent = scope.accepted_count + sum(scope.reworked.values())
            assert all(node.attempt <= spent + 1 for node in scope.nodes.values())
        lines = path.read_text().splitlines(keepends=True)
        if len(lines) > 600:
            break
