from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from runs import live, record
from runs.kernel.events import EventKind
from runs.models import Event, Run
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from runs.turns import folding
from tests import flows

pytestmark = pytest.mark.django_db

two_steps = pipeline(
    "two-steps",
    [{"name": "a", "job": fn_job("a", lambda ctx: "A")}, {"name": "b", "job": fn_job("b", str)}],
)


@pytest.fixture
def run() -> Run:
    return flows.start(two_steps)


def test_seq_begins_at_one_and_has_no_gaps(run: Run) -> None:
    flows.work(run)

    seqs = [event.seq for event in flows.events(run)]

    assert seqs == list(range(1, len(seqs) + 1))
    assert flows.fresh(run).last_seq == seqs[-1]


def test_a_run_is_started_and_ended_once(run: Run) -> None:
    flows.work(run)

    kinds = flows.kinds(run)

    assert kinds.count("run:start") == kinds.count("run:end") == 1
    assert (kinds[0], kinds[-1]) == ("run:start", "run:end")


def test_what_follows_from_a_fact_is_recorded_with_it(run: Run) -> None:
    assert flows.kinds(run) == ["run:start", "workflow:start", "dag:start", "dag:node"]
    assert flows.ready(run)


def test_a_turn_without_facts_writes_nothing(run: Run) -> None:
    before = flows.fresh(run)

    with record.turn(run.pk):
        pass

    after = flows.fresh(run)
    assert (after.last_seq, after.changed_at) == (before.last_seq, before.changed_at)


def test_a_turn_on_a_run_that_is_not_there_says_so() -> None:
    run_id = uuid4()

    with pytest.raises(record.RunUnknown, match=str(run_id)), record.turn(run_id):
        pass


def test_an_event_says_who_and_where_and_when(run: Run) -> None:
    with record.turn(run.pk, actor="user:7", surface="browser") as turn:
        turn.append("note", ("x",), {"text": "hello"})
        now_ms = turn.now_ms

    event = flows.events(run, "note")[0]

    assert (event.actor, event.surface, event.ts) == ("user:7", "browser", now_ms)
    assert (event.path, dict(event.fields)) == (("x",), {"text": "hello"})


def test_what_is_decided_is_by_the_system_whoever_caused_it(run: Run) -> None:
    started, *follows = flows.events(run)

    assert started.actor == flows.STARTER
    assert {event.actor for event in follows} == {"system"}


def test_time_in_a_record_never_goes_back(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(changed_at="2199-01-01T00:00:00Z")

    with record.turn(run.pk) as turn:
        turn.append("note")

    assert flows.events(run, "note")[0].ts == turn.now_ms
    assert turn.now.year == 2199


def test_a_turn_that_raises_leaves_no_trace(run: Run) -> None:
    before = flows.kinds(run)

    def fail() -> None:
        with record.turn(run.pk) as turn:
            turn.append("note")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert flows.kinds(run) == before
    with record.turn(run.pk) as turn:
        assert turn.state.seq == turn.run.last_seq == len(before)


def test_the_second_event_with_a_key_is_refused(run: Run) -> None:
    with record.turn(run.pk) as turn:
        turn.append("note", key="once")

    with pytest.raises(DatabaseError), transaction.atomic(), record.turn(run.pk) as turn:
        turn.append("note", key="once")

    assert len(flows.events(run, "note")) == 1
    assert record.has_key(run.pk, "once")
    assert not record.has_key(run.pk, "twice")


def test_events_are_neither_changed_nor_deleted_by_the_models(run: Run) -> None:
    event = Event.objects.filter(run=run).first()
    assert event is not None

    with pytest.raises(TypeError, match="append only"):
        event.save()
    with pytest.raises(TypeError, match="append only"):
        event.delete()
    with pytest.raises(TypeError, match="append only"):
        Event.objects.filter(run=run).update(kind="x")
    with pytest.raises(TypeError, match="append only"):
        Event.objects.filter(run=run).delete()
    with pytest.raises(TypeError, match="append only"):
        Event.objects.bulk_update([event], ["kind"])


@pytest.mark.parametrize(
    "statement", ["UPDATE runs_event SET kind = 'x'", "DELETE FROM runs_event"]
)
def test_the_database_refuses_to_change_or_delete_an_event(run: Run, statement: str) -> None:
    before = flows.kinds(run)

    with (
        pytest.raises(DatabaseError, match="append only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert flows.kinds(run) == before


def test_work_and_news_go_out_after_the_commit(
    run: Run, django_capture_on_commit_callbacks: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[tuple[object, int]] = []
    monkeypatch.setattr(live, "ring", lambda run_id, seq, *, inbox: rung.append((run_id, seq)))

    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]  # a fixture
        with record.turn(run.pk) as turn:
            turn.append("note")
        assert rung == []

    assert rung == [(run.pk, turn.last_seq)]


def test_news_that_cannot_be_told_harms_nothing(
    run: Run, django_capture_on_commit_callbacks: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(live, "ring", broken)

    with (
        django_capture_on_commit_callbacks(execute=True),  # type: ignore[operator]  # a fixture
        record.turn(run.pk) as turn,
    ):
        turn.append("note")

    assert flows.kinds(run)[-1] == "note"


@pytest.mark.parametrize(
    "value",
    ["\0 and \u2028", "🚀", 2**53, 1e16, 1e21, -0.0, 5e-324, [[[]]], {"😀": 1, "\ufffd": 2}, None],
)
def test_a_payload_reads_back_as_it_was_recorded(run: Run, value: object) -> None:
    with record.turn(run.pk) as turn:
        appended = turn.append("note", (), {"value": value})

    flows.forget()

    assert flows.events(run, "note")[0].fields["value"] == appended.fields["value"] == value


def test_a_cold_process_folds_to_the_same_state(run: Run) -> None:
    flows.work(run)
    last_seq = flows.fresh(run).last_seq

    warm = folding.state_at(run.pk, last_seq)
    flows.forget()
    cold = folding.state_at(run.pk, last_seq)

    assert cold is not warm
    assert cold == warm


def test_an_external_stream_waits_while_a_question_is_open(run: Run) -> None:
    outside = Run(
        kind=Run.Kind.EXTERNAL, stream="deploys", started_by="key:x", audience=run.audience
    )
    with record.first_turn(outside, actor="key:x", surface="api") as turn:
        turn.append(EventKind.LOG, (), {"level": "info", "message": "hello"})

    assert flows.fresh(outside).status == "running"
    assert outside.started_at is not None
    assert outside.definition is None


def test_approval_waits_by_its_kind_of_request() -> None:
    run = flows.ran(pipeline("ask", [{"name": "ok", "job": approval("ok", "Ship?")}]))

    assert (run.status, run.waiting_on, run.display_status) == (
        "waiting",
        ["gate"],
        "waiting_for_gate",
    )
