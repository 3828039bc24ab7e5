from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models import F
from django.utils import timezone

from runs import dispatch, record, sweep
from runs.attempts import heartbeat, worker
from runs.drivers.context import Context
from runs.kernel.approvals import APPROVAL_SCHEMA
from runs.kernel.gate import create_callback_gate
from runs.models import Attempt, Heartbeat, Run
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from runs.stored import RecordCallbacks
from tests import flows

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The attempts that were handed out, in place of a broker."""
    out: list[int] = []
    monkeypatch.setattr(dispatch, "send", lambda attempts, *_: out.extend(attempts))
    return out


def lapse(attempt: int | None = None) -> None:
    """Let a minute pass for the leases."""
    found = Attempt.objects.filter(status="running")
    if attempt is not None:
        found = found.filter(pk=attempt)
    found.update(lease_until=F("lease_until") - timedelta(minutes=1))


def age(seconds: float) -> None:
    """Let time pass for the messages."""
    past = timedelta(seconds=seconds)
    Attempt.objects.update(sent_at=F("sent_at") - past, ready_at=F("ready_at") - past)


def one(fn: Any = lambda ctx: "done", **options: Any) -> Any:
    return pipeline(
        "one",
        [
            {"name": "a", "job": fn_job("a", fn, **options)},
            {"name": "b", "job": fn_job("b", lambda ctx: ctx.needs["a"].summary or "nothing")},
        ],
    )


# --- lost messages -------------------------------------------------------------------------------


def test_a_lost_message_is_sent_again_for_the_same_start(sent: list[int]) -> None:
    run = flows.start(one())
    attempt = flows.ready(run)[0]
    before = flows.kinds(run)
    assert sweep.sweep().resent == 0
    age(11)

    assert sweep.sweep().resent == 1

    assert sent == [attempt]
    assert flows.kinds(run) == before
    assert Attempt.objects.filter(run=run).count() == 1
    assert sweep.sweep().resent == 0


def test_a_long_queue_is_not_sent_again_and_again(sent: list[int]) -> None:
    flows.start(one())

    for _ in range(20):
        age(11)
        sweep.sweep()

    assert 2 <= len(sent) <= 6


def test_a_run_that_loses_every_message_still_ends(sent: list[int]) -> None:
    run = flows.start(one())

    while not flows.fresh(run).is_final:
        age(3600)
        sweep.sweep()
        worker.execute(sent.pop())

    assert flows.fresh(run).status == "passed"
    assert flows.kinds(run).count("job:start") == 2
    assert "step:lost" not in flows.kinds(run)


def test_a_held_run_gets_no_messages(sent: list[int]) -> None:
    run = flows.start(one())
    with record.turn(run.pk) as turn:
        turn.append("run:held", (), {"reason": "somebody said so"})
    age(3600)

    assert sweep.sweep().resent == 0


def test_a_start_without_an_attempt_gets_one(sent: list[int]) -> None:
    run = flows.start(one())
    Attempt.objects.all().delete()
    Run.objects.update(changed_at=F("changed_at") - timedelta(minutes=5))

    assert sweep.sweep().woken == 1

    assert sent == flows.ready(run)
    assert len(sent) == 1
    flows.work(run)
    assert flows.fresh(run).status == "passed"


# --- interrupted steps ---------------------------------------------------------------------------


def test_a_lapsed_lease_of_a_step_that_may_repeat_gives_it_a_new_start() -> None:
    run = flows.start(one(retry_safe=True))
    flows.claimed(run)
    assert sweep.sweep().lost == 0
    lapse()

    assert sweep.sweep().lost == 1

    assert [event.fields["number"] for event in flows.events(run, "step:lost")] == [1]
    flows.work(run)
    assert flows.fresh(run).status == "passed"
    assert flows.steps(run)["a"].attempt == 1
    assert not flows.events(run, "callback-requested")


def test_any_other_step_asks_exactly_one_question_however_often_it_is_swept() -> None:
    run = flows.start(one())
    flows.claimed(run)
    lapse()

    for _ in range(5):
        sweep.sweep()

    waiting = flows.fresh(run)
    assert (waiting.status, waiting.waiting_on) == ("waiting", ["question"])
    assert waiting.display_status == "waiting_for_question"
    assert len(flows.pending(run)) == 1
    assert flows.kinds(run).count("step:lost") == flows.kinds(run).count("callback-requested") == 1
    assert flows.statuses(run) == {"a": "waiting", "b": "idle"}
    assert flows.ready(run) == []


def interrupted(calls: list[int]) -> Run:
    """A run whose first step was interrupted and waits for a person."""

    def body(ctx: Context) -> str:
        calls.append(1)
        return "by itself"

    run = flows.start(one(body))
    flows.claimed(run)
    lapse()
    sweep.sweep()
    return run


def test_finished_counts_it_as_passed_with_the_data_that_was_given() -> None:
    calls: list[int] = []
    run = interrupted(calls)

    flows.answer(run, {"action": "finished", "data": {"tag": "v1"}})
    flows.work(run)

    assert calls == []
    assert flows.fresh(run).status == "passed"
    assert flows.steps(run)["a"].outcome["data"] == {"tag": "v1"}


def test_run_again_starts_it_once_more() -> None:
    calls: list[int] = []
    run = interrupted(calls)

    flows.answer(run, {"action": "run-again"})
    flows.work(run)

    assert calls == [1]
    assert flows.fresh(run).status == "passed"
    assert [
        event.fields["number"] for event in flows.events(run, "job:start") if "a" in event.path
    ] == [
        1,
        2,
    ]


def test_fail_ends_it_as_failed() -> None:
    calls: list[int] = []
    run = interrupted(calls)

    flows.answer(run, {"action": "fail"})
    flows.work(run)

    assert calls == []
    assert flows.fresh(run).status == "failed"
    assert flows.statuses(run) == {"a": "failed", "b": "cancelled"}


def test_a_second_interruption_asks_a_second_question() -> None:
    run = interrupted([])
    flows.answer(run, {"action": "run-again"})
    flows.claimed(run)
    lapse()

    sweep.sweep()

    asked = flows.events(run, "callback-requested")
    assert len({event.fields["request"]["requestId"] for event in asked}) == 2
    assert len(flows.pending(run)) == 1


def test_an_interrupted_condition_is_evaluated_again() -> None:
    asked: list[int] = []

    def when(ctx: Context, last: Any) -> bool:
        asked.append(1)
        return True

    job = dag("cond", {"a": {"job": fn_job("a", lambda ctx: "ok"), "when": when}})
    run = flows.start(job)
    flows.claimed(run)
    lapse()

    sweep.sweep()
    flows.work(run)

    assert asked == [1]
    assert flows.fresh(run).status == "passed"
    assert not flows.events(run, "callback-requested")


def test_a_job_that_is_the_whole_run_is_asked_about_too() -> None:
    run = flows.start(fn_job("alone", lambda ctx: "done"))
    flows.claimed(run)
    lapse()
    sweep.sweep()
    assert flows.fresh(run).display_status == "waiting_for_question"

    flows.answer(run, {"action": "finished"})

    assert flows.fresh(run).status == "passed"


def test_a_sweeper_that_knows_a_worker_is_dead_does_not_wait_for_its_lease() -> None:
    run = flows.start(one(retry_safe=True))
    flows.claimed(run)
    prefix = worker.worker_name().rpartition("/")[0] + "/"

    assert sweep.lose_all_of("somebody else@/") == 0
    assert sweep.lose_all_of(prefix) == 1

    flows.work(run)
    assert flows.fresh(run).status == "passed"


# --- robust --------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_swept_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken, sound = flows.start(one(retry_safe=True)), flows.start(one(retry_safe=True))
    flows.claimed(broken)
    flows.claimed(sound)
    lapse()
    turn = record.turn

    def breaking(run_id: object, **options: Any) -> Any:
        if run_id == broken.pk:
            raise KeyError("what a bug would do")
        return turn(run_id, **options)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(record, "turn", breaking)

    assert sweep.sweep().lost == 1

    monkeypatch.setattr(record, "turn", turn)
    assert flows.events(sound, "step:lost")
    assert sweep.sweep().lost == 1


def test_leases_go_by_the_clock_of_the_database(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    settings.OBVERSA_LEASE_SECONDS = 30.0
    wrong = timezone.now() - timedelta(days=400)
    monkeypatch.setattr(timezone, "now", lambda: wrong)
    monkeypatch.setattr("time.time", wrong.timestamp)
    run = flows.start(one(retry_safe=True))
    attempt = flows.claimed(run)

    lease = Attempt.objects.get(pk=attempt).lease_until
    assert lease is not None
    assert abs(lease - record.database_now() - timedelta(seconds=30)) < timedelta(seconds=20)
    assert sweep.sweep().lost == 0
    assert flows.events(run)[0].ts > (wrong + timedelta(days=300)).timestamp() * 1000


def test_a_sweep_shows_that_it_lives_and_forgets_who_is_long_silent() -> None:
    Heartbeat.objects.create(name="old", role="worker", at=timezone.now() - timedelta(days=2))

    sweep.sweep()
    worker.beat()

    assert set(heartbeat.processes().values_list("role", flat=True)) == {"sweep", "worker"}


def test_other_apps_have_their_rows_swept_too(monkeypatch: pytest.MonkeyPatch) -> None:
    repairs: list[Any] = []
    monkeypatch.setattr(sweep, "_more", repairs)

    def broken() -> int:
        raise KeyError

    sweep.also(broken)
    sweep.also(lambda: 3)

    assert sweep.sweep().other == 3


def test_a_lost_step_gives_back_what_it_had_claimed_to_answer_by_itself() -> None:
    ok = approval("ok", "Well?", answer=lambda request: {"approved": True})
    run = flows.start(dag("g", {"ok": {"job": ok, "retry_safe": True}}))
    pk = flows.claimed(run)
    client = RecordCallbacks(run.pk)
    request = create_callback_gate(
        gate_id="ok",
        gate_version=1,
        decision_text="Well?",
        response_schema=APPROVAL_SCHEMA,
        input={},
    )
    client.post(request)
    # As far as the worker came before it died.
    assert client.claim(request.request_id, "ok:answer").ok

    assert sweep.lose(pk, whatever_the_lease=True)
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    kinds = flows.kinds(run)
    assert kinds.count("callback-requested") == 1
    assert kinds.index("callback-released") > kinds.index("step:lost")
