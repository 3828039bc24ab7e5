"""The same workflows in memory and on disk: the same facts, the same questions, the same end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gates import local_callbacks
from runs.drivers.callbacks import create_callback_client
from runs.drivers.jsonl import read_record
from runs.drivers.memory import RunResult, run
from runs.kernel.state import fold
from tests.runs.scenarios import SCENARIOS, Scenario
from tests.runs.test_conformance import _waits_on, facts, plain, questions


def attended(scenario: Scenario, client: Any, **options: Any) -> RunResult:
    """Run it with somebody who answers while it waits."""
    answers = list(scenario.answers)

    def answer(event: dict[str, Any]) -> None:
        # Outside of every graph nothing but the question itself tells of the pause.
        outside = len(event["path"]) < 2 and event["kind"] != "dag:node"
        asked = event.get("requestId") if outside else _waits_on(event)
        waiting = {one.request_id: one for one in client.list_pending()}
        if asked in waiting:
            token = client.claim(asked, "somebody").claim_token
            client.submit(asked, token, "somebody", waiting[asked].digest, answers.pop(0))

    job = scenario.make()
    return run(job, callbacks=client, on_callback="wait", on_event=answer, run_id="r", **options)


@pytest.mark.parametrize("name", SCENARIOS)
def test_memory_and_disk_record_the_same(name: str, tmp_path: Path) -> None:
    scenario, path = SCENARIOS[name], tmp_path / "r.jsonl"
    (tmp_path / "alone").mkdir()
    alone = attended(scenario, create_callback_client(), cwd=tmp_path / "alone")
    client = local_callbacks(tmp_path / "store", "r")
    kept = attended(scenario, client, cwd=tmp_path, record_to=path)
    told = list(read_record(path).events)

    assert kept.outcome.status == alone.outcome.status == scenario.ends
    assert plain(kept.outcome.to_json()) == plain(alone.outcome.to_json())
    assert [event.to_wire() for event in told if event.kind != "callback-claimed"] == [
        event.to_wire() for event in kept.events if event.kind != "callback-claimed"
    ]
    on_disk, in_memory = facts(told), facts(list(alone.events))
    # What only a record on disk says of its start.
    more = {"recordPath", "recordId", "shape"}
    for kind, fields in on_disk[()]:
        if kind == "run:start":
            for key in more:
                fields.pop(key, None)
    assert on_disk == in_memory
    assert sorted(questions(told)) == sorted(questions(list(alone.events)))
    assert fold(told).ended == kept.outcome


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_that_stops_at_every_question_comes_to_the_same_end(
    name: str, tmp_path: Path
) -> None:
    scenario, path = SCENARIOS[name], tmp_path / "r.jsonl"
    client = local_callbacks(tmp_path / "store", "r")
    answers = list(scenario.answers)
    for _ in range(len(answers) + 1):
        result = run(
            scenario.make(),
            callbacks=client,
            record_to=path,
            resume=True,
            run_id="r",
            cwd=tmp_path,
        )
        if result.outcome.status != "paused" or not answers:
            break
        request = client.list_pending()[0]
        token = client.claim(request.request_id, "somebody").claim_token
        assert token is not None
        response = answers.pop(0)
        assert client.submit(request.request_id, token, "somebody", request.digest, response).ok

    assert result.outcome.status == scenario.ends
    assert fold(read_record(path).events).ended == result.outcome
