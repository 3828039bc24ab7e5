from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from runs import record
from runs.kernel.state import RunState
from runs.models import Event, Run
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.turns import folding, locking
from runs.turns.fairness import FairLock
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 8


@pytest.fixture
def run() -> Run:
    """A run that waits, so that only the test writes to it."""
    return flows.ran(pipeline("waits", [{"name": "ok", "job": approval("ok", "Go on?")}]))


def test_seq_has_no_gaps_when_many_threads_write_to_one_run(run: Run) -> None:
    before = flows.fresh(run).last_seq

    def write(index: int) -> None:
        for number in range(10):
            with record.turn(run.pk, actor=f"user:{index}") as turn:
                turn.append("note", (), {"number": number})

    assert flows.at_once(THREADS, write) == [None] * THREADS

    seqs = [event.seq for event in flows.events(run)]
    assert seqs == list(range(1, before + THREADS * 10 + 1))
    assert flows.fresh(run).last_seq == seqs[-1]
    for index in range(THREADS):
        own = [e.fields["number"] for e in flows.events(run, "note") if e.actor == f"user:{index}"]
        assert own == list(range(10))


def test_a_reader_never_sees_a_gap_while_others_write(run: Run) -> None:
    done = threading.Event()
    seen: list[list[int]] = []

    def read() -> None:
        while not done.is_set():
            seen.append(list(Event.objects.filter(run=run).values_list("seq", flat=True)))

    def write(_: int) -> None:
        for _number in range(10):
            with record.turn(run.pk) as turn:
                turn.append("one")
                turn.append("two")

    with flows.in_background(read):
        flows.at_once(4, write)
        done.set()

    assert seen
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in seen)


def test_turns_that_fail_leave_no_gap_between_those_that_do_not(run: Run) -> None:
    before = flows.fresh(run).last_seq

    def write(index: int) -> None:
        for _ in range(5):
            with record.turn(run.pk) as turn:
                turn.append("note")
                if index % 2:
                    raise ZeroDivisionError

    results = flows.at_once(THREADS, write)

    assert sum(isinstance(one, ZeroDivisionError) for one in results) == THREADS // 2
    seqs = [event.seq for event in flows.events(run)]
    assert seqs == list(range(1, before + 5 * THREADS // 2 + 1))


def test_the_second_turn_waits_for_the_first(run: Run) -> None:
    inside, order = threading.Event(), []

    def second() -> None:
        inside.wait(10)
        with record.turn(run.pk) as turn:
            order.append(("second", turn.run.last_seq))

    with flows.in_background(second), record.turn(run.pk) as turn:
        turn.append("note")
        inside.set()
        order.append(("first", turn.last_seq))

    assert order == [("first", turn.last_seq), ("second", turn.last_seq)]


@pytest.mark.postgres
def test_turns_on_different_runs_do_not_wait_for_each_other(run: Run) -> None:
    other = flows.start(pipeline("waits", [{"name": "ok", "job": approval("ok", "Go on?")}]))

    def second() -> None:
        with record.turn(other.pk) as turn:
            turn.append("note")

    with record.turn(run.pk), flows.in_background(second) as thread:
        thread.join(timeout=10)
        assert not thread.is_alive()

    assert flows.events(other, "note")


def test_a_state_of_a_turn_that_failed_is_not_remembered(run: Run) -> None:
    def fail() -> None:
        with record.turn(run.pk) as turn:
            turn.append("run:cancel-requested")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    with record.turn(run.pk) as turn:
        assert not turn.state.cancelled
        turn.append("note")
    warm = folding.state_at(run.pk, turn.last_seq)
    flows.forget()
    assert folding.state_at(run.pk, turn.last_seq) == warm


def test_a_turn_that_fails_at_its_commit_leaves_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = flows.kinds(run)

    def broken() -> None:
        raise OperationalError

    def fail() -> None:
        with record.turn(run.pk) as turn:
            turn.append("note")
            monkeypatch.setattr(connection, "commit", broken)

    with pytest.raises(OperationalError):
        fail()
    monkeypatch.undo()

    assert flows.kinds(run) == before
    with record.turn(run.pk) as turn:
        assert turn.state.seq == len(before)


def test_another_process_wrote_in_between_and_its_events_are_folded(run: Run) -> None:
    with record.turn(run.pk) as turn:
        turn.append("note")
    remembered = folding.state_at(run.pk, turn.last_seq)
    Event.objects.create(
        run=run, seq=turn.last_seq + 1, kind="run:cancel-requested", at=turn.now, payload={}
    )
    Run.objects.filter(pk=run.pk).update(last_seq=turn.last_seq + 1)

    with record.turn(run.pk) as after:
        assert not remembered.cancelled
        assert after.before.cancelled


def test_writers_are_let_in_in_the_order_they_asked() -> None:
    lock, order = FairLock(), []
    asked = [threading.Event() for _ in range(5)]

    def enter(index: int) -> None:
        asked[index].set()
        with lock.held():
            order.append(index)

    threads = [threading.Thread(target=enter, args=(index,)) for index in range(5)]
    with lock.held(), lock.held():
        for index, thread in enumerate(threads):
            thread.start()
            asked[index].wait(10)
            while len(lock._waiting) <= index:
                pass
    for thread in threads:
        thread.join(10)

    assert order == list(range(5))


@pytest.mark.parametrize("number", [1, locking.AT_ONCE, locking.AT_ONCE * 2 + 3])
def test_a_process_that_knows_an_old_state_catches_up(run: Run, number: int) -> None:
    with record.turn(run.pk) as first:
        first.append("note")
    old = folding.known_of(run.pk)
    with record.turn(run.pk) as turn:
        for index in range(number):
            turn.append("note", ("a", "b"), {"text": f"\0 {index} 😀"}, key=f"k{index}")
        turn.append("run:cancel-requested")
    fresh = turn.state
    for known in (old, RunState()):
        folding.forget()
        folding.remember(run.pk, known)
        with record.turn(run.pk) as after:
            assert after.before == fresh


def test_events_are_read_with_the_lock_as_they_are_read_alone(run: Run) -> None:
    with record.turn(run.pk, actor="user:1", surface="api") as turn:
        turn.append("note", ("a", 'b"\0'), {"n": 2**53, "deep": [{"x": None}]}, key="once")
    with transaction.atomic():
        found = locking.locked(run.pk, turn.before.seq)

    assert found is not None
    if connection.vendor == "postgresql":
        assert found[2] == flows.events(run)[turn.before.seq :]


def has_index(field: Any) -> bool:
    return bool(field.db_index)


def test_no_index_of_runs_is_about_what_every_turn_changes() -> None:
    """PostgreSQL writes a change of a row into all of the table's indexes, or into none."""
    changing = {"last_seq", "head", "seal", "changed_at", "done_count", "total_count"}
    told = [str(one.deconstruct()) for one in (*Run._meta.indexes, *Run._meta.constraints)]

    assert [one for one in told if any(f"'{name}'" in one for name in changing)] == []
    assert not [f.name for f in Run._meta.fields if f.name in changing and has_index(f)]
