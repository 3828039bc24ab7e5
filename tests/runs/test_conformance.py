"""The same workflows in one process and in the service: the same facts, the same end."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.callbacks import create_callback_client
from runs.drivers.jsonl import read_record
from runs.drivers.memory import RunResult
from runs.drivers.memory import run as run_in_memory
from runs.kernel.events import CALLBACK_KINDS, Event
from runs.kernel.state import fold
from runs.models import Run
from tests import flows
from tests.runs.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.django_db

# What only the service says, and what differs from run to run.
SERVICE_KINDS = {"step:ready"}
SERVICE_FIELDS = {"number", "workflow", "definition", "params", "task", "runId"}
VOLATILE = {
    "durationMs",
    "recordId",
    "claimToken",
    "routerId",
    "workspace",
    "ts",
    "seq",
    "resumeAt",
    # Only a run in one process has prices.
    "cost",
}


def in_memory(scenario: Scenario, **options: Any) -> RunResult:
    """Run it with somebody who answers while it waits."""
    client = create_callback_client()
    answers = list(scenario.answers)

    def answer(event: dict[str, Any]) -> None:
        """Answer what the run now waits for; not before the pause is recorded."""
        # Outside of every graph nothing but the question itself tells of the pause.
        alone = len(event["path"]) < 2 and event["kind"] != "dag:node"
        asked = event.get("requestId") if alone else _waits_on(event)
        waiting = {one.request_id: one for one in client.list_pending()}
        if asked not in waiting:
            return
        token = client.claim(asked, "somebody").claim_token
        assert token is not None
        client.submit(asked, token, "somebody", waiting[asked].digest, answers.pop(0))

    with tempfile.TemporaryDirectory() as folder:
        options.setdefault("cwd", folder)
        return _run(scenario, client, answer, options)


def _run(scenario: Scenario, client: Any, answer: Any, options: dict[str, Any]) -> RunResult:
    return run_in_memory(
        scenario.make(),
        callbacks=client,
        on_callback="wait",
        on_event=answer,
        run_id="r",
        **options,
    )


def _waits_on(event: dict[str, Any]) -> Any:
    outcome = event.get("outcome") or {}
    if event["kind"] != "dag:node" or outcome.get("status") != "paused":
        return None
    return (outcome.get("data") or {}).get("requestId")


def in_service(scenario: Scenario) -> Run:
    run = flows.start(scenario.make(), name="scenario")
    answers = list(scenario.answers)
    while flows.ready(run) or flows.pending(run) or flows.sleeps(run):
        flows.work(run)
        if flows.sleeps(run):
            flows.wake(run)
            continue
        if waiting := flows.pending(run):
            flows.answer(run, answers.pop(0), request_id=waiting[0].request_id)
    assert not answers
    return flows.fresh(run)


def facts(events: list[Event]) -> dict[tuple[str, ...], list[Any]]:
    """The facts at each place, in order; what happens side by side has no order between places."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for event in events:
        if event.kind in SERVICE_KINDS or event.kind in CALLBACK_KINDS:
            continue
        if event.kind == "job:start" and "task" in event.fields:
            continue
        place = event.path
        if event.kind == "dag:node":
            place = (*place, event.fields["node"], "node")
        found.setdefault(place, []).append((event.kind, plain(dict(event.fields))))
    return found


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        gone = VOLATILE | SERVICE_FIELDS
        return {key: plain(item) for key, item in value.items() if key not in gone}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def questions(events: list[Event]) -> list[tuple[str, Any]]:
    """What was asked and answered, without who did it."""
    return [
        (
            event.kind,
            event.fields.get("requestId", event.fields.get("request", {}).get("requestId")),
        )
        for event in events
        if event.kind in ("callback-requested", "callback-submitted", "callback-superseded")
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_memory_and_service_record_the_same(name: str) -> None:
    scenario = SCENARIOS[name]

    alone, served = in_memory(scenario), in_service(scenario)
    events = flows.events(served)

    assert alone.outcome.status == scenario.ends
    assert plain(served.outcome) == plain(alone.outcome.to_json())
    assert facts(events) == facts(list(alone.events))
    assert sorted(questions(events)) == sorted(questions(list(alone.events)))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_record_in_a_file_is_the_record_of_the_run(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    alone = in_memory(SCENARIOS[name], record_to=path)

    read = read_record(path)

    assert read.unreadable_count == 0
    # The token of a claim is kept in no file.
    assert [plain(e.to_wire()) for e in read.events] == [plain(e.to_wire()) for e in alone.events]
    assert fold(read.events).ended == fold(alone.events).ended
