from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.models import F

from runs import backlog, dispatch, registry, services, sweep, tasks
from runs.attempts import worker
from runs.attempts.starts import Due
from runs.embedded import EmbeddedWorker
from runs.models import Attempt, Run
from runs.shapes.dag import dag
from runs.shapes.steps import fn_job
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)


def fan(name: str, count: int, fn: Any = lambda ctx: "done") -> Any:
    """So many steps side by side."""
    return dag(name, {f"s{at}": fn_job(f"s{at}", fn) for at in range(count)}, concurrency=count)


def one(name: str) -> Any:
    return fn_job(name, lambda ctx: "done")


@pytest.fixture
def sent(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What went to a broker that takes eight steps."""
    out: list[int] = []
    settings.CELERY_BROKER_URL = "memory://"
    settings.OBVERSA_HANDED_OUT = 8
    monkeypatch.setattr(dispatch, "send", lambda attempts, *_: out.extend(attempts))
    monkeypatch.setattr(backlog, "crowd", backlog.Crowd())
    # A slow machine has lost no message.
    monkeypatch.setattr(sweep, "RESEND_AFTER", timedelta(hours=1))
    return out


def whose(attempts: list[int]) -> list[str]:
    """The workflows of the attempts, in their order."""
    found = dict(Attempt.objects.values_list("pk", "run__workflow"))
    return [found[pk] for pk in attempts]


def do_next(sent: list[int]) -> int:
    """Be a worker that takes the oldest message; returns its attempt."""
    attempt = sent.pop(0)
    tasks.execute.apply((attempt,), throw=True)
    return attempt


# --- what lies with the broker -------------------------------------------------------------------


def test_a_run_that_fans_out_leaves_room_for_others_at_the_broker(sent: list[int]) -> None:
    noisy = flows.start(fan("noisy", 50))

    assert len(sent) == 8
    assert Attempt.objects.filter(run=noisy, status="ready", sent_at=None).count() == 42


def test_what_is_held_back_is_handed_out_as_the_first_are_done(sent: list[int]) -> None:
    noisy = flows.start(fan("noisy", 50))
    most = 0
    for _ in range(60):
        if not sent:
            break
        do_next(sent)
        most = max(most, len(sent))

    assert flows.fresh(noisy).status == "passed"
    assert most <= 8
    assert not Attempt.objects.filter(status="ready").exists()


def test_a_small_run_ends_while_most_of_a_large_one_still_waits(sent: list[int]) -> None:
    flows.start(fan("noisy", 200))
    small = flows.start(one("small"), actor="user:2")

    done = 0
    while not flows.fresh(small).is_final:
        do_next(sent)
        done += 1
        assert done < 50

    assert Attempt.objects.filter(status="ready", run__workflow="noisy").count() > 150


def test_somebody_with_many_runs_keeps_nobody_waiting(sent: list[int]) -> None:
    many, few = flows.offer(one("many")), flows.offer(one("few"))
    for _ in range(60):
        services.start_run(many, {}, actor="key:busy")
    for _ in range(3):
        services.start_run(few, {}, actor="user:2")
    # The knowledge of a moment ago is over, and a sweep looks.
    order = []
    for _ in range(63):
        sweep.sweep()
        order += whose([do_next(sent)])

    assert order[:-1].count("few") == 3
    assert max(at for at, name in enumerate(order) if name == "few") < 45


def test_the_sweep_hands_out_what_a_killed_process_held_back(
    sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    flows.start(fan("noisy", 20))
    del sent[:]
    Attempt.objects.filter(sent_at__isnull=False).update(status="done")

    assert sweep.sweep().resent == 8

    assert len(sent) == 8


def test_two_who_hand_out_at_once_hand_out_different_steps(sent: list[int]) -> None:
    flows.start(fan("noisy", 40))
    Attempt.objects.update(sent_at=None)
    found = [pk for pk, _ in backlog.choose(8, held_back=True)]
    won: list[list[int]] = []
    barrier = threading.Barrier(6)

    def mark() -> None:
        barrier.wait(30)
        won.append(backlog._marked(found))
        connection.close()

    threads = [threading.Thread(target=mark) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    taken = [pk for some in won for pk in some]
    assert len(taken) == len(set(taken))
    assert set(taken) <= set(found)


def test_a_run_that_is_resumed_hands_out_no_more_than_others(sent: list[int]) -> None:
    run = flows.start(fan("noisy", 30))
    Run.objects.filter(pk=run.pk).update(held_reason="")
    with_reason = flows.fresh(run)
    Attempt.objects.filter(run=run).update(sent_at=F("ready_at"))
    due = Due.find(flows.ready(run)[0])
    assert due is not None
    worker._hold(due, "changed")
    del sent[:]
    backlog.crowd.saw(held_back=False)

    services.resume_run(with_reason.pk, actor="user:1")

    assert len(sent) == 8


def test_without_a_limit_or_a_broker_everything_is_handed_out(
    sent: list[int], settings: LazySettings
) -> None:
    settings.OBVERSA_HANDED_OUT = 0
    flows.start(fan("first", 30))
    assert len(sent) == 30
    settings.CELERY_BROKER_URL = None
    settings.OBVERSA_HANDED_OUT = 8
    flows.start(fan("second", 30))

    assert len(sent) == 60
    assert not Attempt.objects.filter(sent_at=None).exists()


# --- whose turn it is ----------------------------------------------------------------------------


def test_starters_workflows_and_runs_take_turns() -> None:
    first = flows.start(fan("a", 3), actor="user:1")
    flows.start(fan("b", 2), actor="user:1")
    again = services.start_run("a", {}, actor="user:1")
    other = flows.start(one("c"), actor="user:2")

    order = [pk for pk, _ in backlog.choose(20)]

    # The other person is second; of the first one the workflows alternate, and of a the runs.
    assert whose(order)[:5] == ["a", "c", "b", "b", "a"]
    runs = dict(Attempt.objects.values_list("pk", "run"))
    assert [runs[order[0]], runs[order[1]], runs[order[4]]] == [first.pk, other.pk, again.pk]
    assert sorted(order) == flows.ready()


def test_priority_goes_first_and_age_makes_up_for_it() -> None:
    idle = flows.start(one("idle"), priority=-2)
    plain = flows.start(one("plain"))
    urgent = flows.start(one("urgent"), priority=3)
    order = [pk for pk, _ in backlog.choose(3)]
    assert whose(order) == ["urgent", "plain", "idle"]

    past = timedelta(minutes=55)
    Attempt.objects.filter(run=idle).update(ready_at=F("ready_at") - past)

    assert whose([pk for pk, _ in backlog.choose(3)])[-1] == "plain"
    Attempt.objects.filter(run=idle).update(ready_at=F("ready_at") - past)
    assert whose([pk for pk, _ in backlog.choose(3)]) == ["idle", "urgent", "plain"]
    assert plain.priority == 0
    assert urgent.priority == 3


def test_steps_of_held_runs_and_of_those_in_line_are_nobodys_turn() -> None:
    held, queued = flows.start(one("held")), flows.start(one("queued"))
    Run.objects.filter(pk=held.pk).update(held_reason="changed")
    Run.objects.filter(pk=queued.pk).update(admission="queued")

    assert backlog.choose(5) == []


def test_those_that_somebody_has_are_left_out() -> None:
    flows.start(fan("noisy", 10))
    ready = flows.ready()

    assert [pk for pk, _ in backlog.choose(3, without=ready[:4])] == ready[4:7]


# --- the embedded worker -------------------------------------------------------------------------


def test_embedded_a_small_run_ends_while_most_of_a_large_one_still_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "refresh", lambda: None)
    monkeypatch.setattr(worker, "ONWARD_SECONDS", 0.0)
    left: list[int] = []

    def small(ctx: Any) -> str:
        left.append(Attempt.objects.filter(status="ready", run__workflow="noisy").count())
        return "done"

    noisy = flows.start(fan("noisy", 1000))
    made = EmbeddedWorker(threads=2)
    made.start()
    try:
        pause = threading.Event()
        for _ in range(2000):
            if Attempt.objects.filter(run=noisy, status="done").count() >= 20:
                break
            pause.wait(0.02)
        run = flows.start(fn_job("small", small), actor="user:2")
        for _ in range(2000):
            if flows.fresh(run).is_final:
                break
            pause.wait(0.02)
    finally:
        made.stop()

    assert flows.fresh(run).status == "passed"
    assert left[0] > 500
