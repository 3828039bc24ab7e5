"""Turns that are tried without the lock of their run, and made under it when that fails."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from runs import record, registry, services, tries
from runs.attempts import worker
from runs.attempts.starts import Due, Start, Taken
from runs.kernel.moments import milliseconds
from runs.models import Attempt, Event, Run, Workflow
from runs.record import Turn
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from runs.turns import folding, recent
from runs.turns.clock import Clock
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)
postgres = pytest.mark.postgres


@pytest.fixture
def run() -> Run:
    """A run that waits, so that only the test writes to it."""
    return flows.ran(pipeline("waits", [{"name": "ok", "job": approval("ok", "Go on?")}]))


def note(turn: Turn) -> int:
    turn.append("note", (), {"by": "in_turn"})
    return turn.last_seq


def elsewhere(run: Run) -> None:
    """Somebody in another process writes to the run."""
    tries.look(run.pk)
    seen = recent.of(run.pk)
    assert seen is not None
    with record.turn(run.pk) as turn:
        turn.append("note", (), {"by": "another"})
    recent.put(seen)


def notes(run: Run) -> list[str]:
    return [event.fields["by"] for event in flows.events(run, "note")]


def seqs_have_no_gap(run: Run) -> bool:
    seqs = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
    return seqs == list(range(1, flows.fresh(run).last_seq + 1))


@postgres
def test_a_turn_of_a_run_that_was_just_seen_is_one_statement(run: Run) -> None:
    tries.look(run.pk)

    with CaptureQueriesContext(connection) as queries:
        seq = tries.in_turn(run.pk, note)

    assert len(queries) == 1
    assert flows.fresh(run).last_seq == seq
    assert notes(run) == ["in_turn"]
    assert seqs_have_no_gap(run)


@postgres
def test_whoever_was_slower_makes_the_turn_again_under_the_lock(run: Run) -> None:
    elsewhere(run)
    calls: list[bool] = []

    def do(turn: Turn) -> None:
        calls.append(turn.is_locked)
        note(turn)

    tries.in_turn(run.pk, do)

    assert calls == [False, True]
    assert notes(run) == ["another", "in_turn"]
    assert seqs_have_no_gap(run)


@postgres
def test_a_run_at_which_others_are_faster_is_locked_for_a_while(run: Run) -> None:
    elsewhere(run)
    tries.in_turn(run.pk, note)
    calls: list[bool] = []

    def do(turn: Turn) -> None:
        calls.append(turn.is_locked)
        note(turn)

    tries.look(run.pk)
    tries.in_turn(run.pk, do)

    assert calls == [True]


@postgres
def test_the_database_refuses_a_time_that_is_not_its_own(run: Run) -> None:
    tries.look(run.pk)
    seen = recent.of(run.pk)
    assert seen is not None
    ahead = replace(seen.clock, read=seen.clock.read + timedelta(minutes=10))
    recent.put(replace(seen, clock=ahead))

    tries.in_turn(run.pk, note)

    (event,) = Event.objects.filter(run=run, kind="note")
    assert abs(record.database_now() - event.at) < timedelta(minutes=5)
    assert notes(run) == ["in_turn"]


@postgres
def test_what_a_turn_writes_by_itself_is_written_under_the_lock(run: Run) -> None:
    tries.look(run.pk)
    changed: list[int] = []

    def do(turn: Turn) -> None:
        changed.append(Workflow.objects.filter(name=run.workflow).update(title="Anew"))
        note(turn)

    tries.in_turn(run.pk, do)

    assert changed == [1]
    assert notes(run) == ["in_turn"]


@postgres
def test_a_turn_that_finds_nothing_to_do_looks_again_under_the_lock(run: Run) -> None:
    tries.look(run.pk)
    calls: list[bool] = []

    tries.in_turn(run.pk, lambda turn: calls.append(turn.is_locked))

    assert calls == [False, True]


@postgres
def test_a_start_that_somebody_else_took_leaves_nothing_written() -> None:
    step = {"name": "a", "job": fn_job("a", lambda ctx: "done")}
    run = flows.start(pipeline("one", [step]))
    attempt = Attempt.objects.get(run=run)
    due = Due.find(attempt.pk)
    assert due is not None
    made = registry.published(due.workflow)
    assert made is not None
    mine, theirs = Start(due, made), Start(due, made)
    assert worker.claim(theirs)
    before = flows.fresh(run).last_seq
    tries.look(run.pk)

    def finish(turn: Turn) -> None:
        mine.finish(turn)
        note(turn)

    with pytest.raises(Taken):
        tries.in_turn(run.pk, finish)

    assert flows.fresh(run).last_seq == before
    assert notes(run) == []
    assert Attempt.objects.get(pk=attempt.pk).fence == theirs.fence


def test_what_a_turn_raises_comes_out_and_leaves_nothing(run: Run) -> None:
    tries.look(run.pk)

    def do(turn: Turn) -> None:
        note(turn)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tries.in_turn(run.pk, do)

    assert notes(run) == []


def test_within_a_transaction_the_run_is_locked_as_ever(run: Run) -> None:
    tries.look(run.pk)
    calls: list[bool] = []

    def do(turn: Turn) -> None:
        calls.append(turn.is_locked)
        note(turn)

    with transaction.atomic():
        tries.in_turn(run.pk, do)

    assert calls == [True]
    assert notes(run) == ["in_turn"]


def test_an_unknown_run_is_told_of(run: Run) -> None:
    unknown = uuid4()
    tries.look(unknown)

    with pytest.raises(record.RunUnknown):
        tries.in_turn(unknown, note)


def test_many_who_try_at_once_leave_no_gap_and_lose_nothing(run: Run) -> None:
    def write(_: int) -> None:
        for _number in range(10):
            # Whoever was slower once goes on trying here, which a busy run would not let it.
            recent._busy.clear()
            tries.look(run.pk)
            tries.in_turn(run.pk, note)

    assert flows.at_once(8, write) == [None] * 8

    assert notes(run) == ["in_turn"] * 80
    assert seqs_have_no_gap(run)


def test_the_state_that_is_remembered_after_a_try_is_the_fold_of_the_record(run: Run) -> None:
    tries.look(run.pk)
    tries.in_turn(run.pk, note)
    last_seq = flows.fresh(run).last_seq

    known = folding.known_of(run.pk)
    folding.forget()

    assert known == folding.state_at(run.pk, last_seq)


# --- the first turn ------------------------------------------------------------------------------


def one_step() -> str:
    return flows.offer(pipeline("begins", [{"name": "a", "job": fn_job("a", lambda _: "done")}]))


@postgres
def test_a_start_is_one_reading_and_one_statement() -> None:
    name = one_step()
    services.start_run(name, {}, actor="user:1")

    with CaptureQueriesContext(connection) as queries:
        run = services.start_run(name, {}, actor="user:1")

    assert [query["sql"].split()[0] for query in queries] == ["SELECT", "WITH"]
    assert flows.kinds(run) == flows.kinds(flows.fresh(run))
    assert flows.fresh(run).head == run.head
    assert flows.fresh(run).created_at == run.created_at
    assert flows.events(run)[0].ts == milliseconds(run.created_at)


@postgres
def test_a_first_turn_that_has_to_lock_something_is_made_in_a_transaction() -> None:
    name = one_step()
    calls: list[bool] = []
    made = services.start_run(name, {}, actor="user:1")
    run = Run(
        workflow=name,
        definition_id=made.definition_id,
        audience_id=made.audience_id,
        started_by="user:1",
    )

    def begin(turn: Turn) -> None:
        calls.append(turn.is_locked)
        turn.append("run:start", (), {"runId": str(run.pk), "session": 1, "params": {}})
        turn.need_lock()

    begun = tries.first_turn(run, begin, actor="user:1", surface="", clock=Clock(made.created_at))

    assert calls == [False, True]
    assert flows.kinds(begun) == flows.kinds(made)
    assert seqs_have_no_gap(begun)
    assert flows.work(begun) is not None
    assert flows.fresh(begun).status == "passed"


def test_of_many_starts_with_one_key_there_is_one_run() -> None:
    name = one_step()

    def start(_: int) -> str:
        return str(services.start_run(name, {}, actor="user:1", idempotency_key="once").pk)

    assert len(set(flows.at_once(8, start))) == 1
    assert Run.objects.filter(workflow=name).count() == 1
