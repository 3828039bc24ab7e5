"""The faults, each a function of the play in which it happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from runs import services, sweep
from runs.kernel.events import EventKind
from runs.models import Attempt, Event, Run
from tests.faults import clock, people, scene, verdict, work
from tests.faults.mortals import Mortals
from tests.faults.play import Play

LONG_STEP_SECONDS = 20.0
Fault = Callable[[Play], None]


def messages(play: Play, mode: str) -> None:
    """Every message is doubled, or lost at first, or costs its sender's life."""
    scene.put("mode", mode)
    play.start(work.UNSAFE)
    play.to_the_end()


def kills(play: Play, workflow: str) -> None:
    """Workers die in the middle of a step, before its effect and after it."""
    play.start(workflow)
    moments: tuple[str, ...] = ("before", "after") * 3
    if play.is_short:
        moments = ("after",) if workflow == work.SAFE else ("before",)
    for moment in moments:
        if victim := play.hold(moment):
            play.workers.kill(victim.worker)
            scene.note("faults", "killed")
            play.workers.start(1)
        play.release(moment)
    play.to_the_end()


def stalls(play: Play, workflow: str, *, patient: bool = True) -> None:
    """A worker stops in the middle of a step, its lease lapses, others go on, and it wakes.

    Patient people answer about a lost step once the worker is back; others at once.
    """
    play.start(workflow)
    for late in (True,) if play.is_short else (False, True):
        victim = play.hold("before")
        if victim is None:
            break
        if patient:
            scene.put("people", "patient")
        play.workers.stall(victim.worker)
        scene.note("faults", "stalled")
        play.release("before")
        play.until(victim.is_lost, "a lapsed lease")
        if late and (workflow == work.SAFE or not patient):
            play.to_the_end()
        play.workers.wake(victim.worker)
        play.until(victim.is_refused, "a late result that is refused")
        scene.take("people")
    play.to_the_end()


def web_deaths(play: Play) -> None:
    """Web processes die after they committed a start or an answer, before they sent it."""
    mortals = Mortals()

    def answer(run_id: object) -> None:
        if mortals.do("answer", run=str(run_id)):
            scene.note("faults", "died answering")

    try:
        for _ in range(play.count):
            key = secrets.token_hex(8)
            if mortals.do("start", workflow=work.UNSAFE, key=key):
                scene.note("faults", "died starting")
            # Who got no reply asks again, and gets the run that is there.
            again = services.start_run(work.UNSAFE, {}, actor=people.WHO, idempotency_key=key)
            play.runs.append(again)
        play.answer = answer
        play.to_the_end()
    finally:
        mortals.close()


def scheduler_deaths(play: Play) -> None:
    """The sweep dies after it committed what it repairs, before it sent it; the next one lives."""
    mortals = Mortals()
    left = 2 if play.is_short else 10

    def sweeps() -> None:
        nonlocal left
        if left and mortals.do("sweep"):
            scene.note("faults", "died sweeping")
            left -= 1
            if not left:
                scene.take("mode")
        sweep.sweep()

    scene.put("mode", "lost")
    play.sweep = sweeps
    try:
        play.start(work.UNSAFE)
        play.to_the_end()
    finally:
        mortals.close()


def redelivery(play: Play, cause: str) -> None:
    """The broker gives a message out again while its step is still being done.

    Redis does so when the visibility timeout is over, RabbitMQ when the connection of the
    consumer is closed (by the network, or by RabbitMQ itself after its consumer timeout).
    """
    (first,) = play.start(work.UNSAFE, 1)
    began = time.monotonic()
    victim = play.hold("before", f"{first.pk}/")
    assert victim is not None
    again = f"runs.execute [{victim.attempt.pk}]"
    play.start(work.UNSAFE, play.count - 1)
    if cause == "cut":
        assert play.wire.cut()
        scene.note("faults", "cut")

    def is_over() -> bool:
        restore_visible()
        is_long = play.is_short or time.monotonic() > began + LONG_STEP_SECONDS
        return is_long and again in scene.notes("redelivered")

    play.until(is_over, "a message given out again")
    assert Attempt.objects.filter(pk=victim.attempt.pk, status="running").exists()
    play.release("before")
    play.to_the_end()


def turns_tried(play: Play, what: str) -> None:
    """Workers die, or lose the database, around the one statement of a turn; or two try at once."""
    scene.put("try", what)
    play.start(work.UNSAFE)
    play.to_the_end()


def both_at_once(play: Play) -> None:
    """Two workers end steps of one run at the same moment, each on what it saw before."""
    scene.put("try", "together")
    play.start(work.FORKED)
    play.to_the_end()


def clock_jumps(play: Play) -> None:
    """The database's clock is set forward and back, further than a turn or a lease allows."""
    jumps = [2.0, 0.0, 12.0, 9.0] if play.is_short else [2.0, 0.0, -3.0, 12.0, 9.0, 60.0, 57.0]
    with clock.to_be_set():
        play.workers.close()
        play.workers.start(2)
        play.start(work.SAFE)
        for ahead in jumps:
            clock.set_ahead(ahead)
            scene.note("faults", f"the clock is {ahead} s ahead")
            enough = Event.objects.count() + 2 * play.count
            play.until(partial(_has_gone_on, play, enough), "events by the clock as it is now")
        play.to_the_end()
        play.workers.close()


def _has_gone_on(play: Play, enough: int) -> bool:
    return Event.objects.count() > enough or not play.unfinished


def withdrawn(play: Play) -> None:
    """Runs are cancelled while the messages for their first steps are still on their way."""
    scene.put("mode", "held up")
    play.expected = lambda run: verdict.Expected(
        status=Run.Status.CANCELLED,
        effects=[],
        once=(EventKind.RUN_START, EventKind.RUN_END),
    )
    for run in play.start(work.UNSAFE):
        services.cancel_run(run.pk, actor=people.WHO)
    starts = Attempt.objects.filter(run__in=play.runs).values_list("pk", flat=True)
    expected = {f"runs.execute [{pk}]" for pk in starts}
    assert expected
    play.until(lambda: expected.issubset(scene.notes("dealt-with")), "every late message")
    play.to_the_end()


def restore_visible() -> None:
    """Let Redis have back what was not acknowledged in time, as any consumer does now and then.

    A worker does it every hundred seconds or so.
    """
    from tests.faults.app import app

    with app.connection_for_write() as connection:
        channel: Any = connection.default_channel
        if connection.transport.driver_type == "redis":
            channel.qos.restore_visible(num=100, interval=1)


def everything(play: Play) -> None:
    """Every message is doubled while workers die."""
    scene.put("mode", "twice")
    kills(play, work.SAFE)


FAULTS: dict[str, Fault] = {
    "every message delivered twice": partial(messages, mode="twice"),
    "every message lost once": partial(messages, mode="lost"),
    "worker killed in a step, retry_safe": partial(kills, workflow=work.SAFE),
    "worker killed in a step, not retry_safe": partial(kills, workflow=work.UNSAFE),
    "worker killed between commit and send": partial(messages, mode="dies"),
    "worker stalls past its lease, retry_safe": partial(stalls, workflow=work.SAFE),
    "worker stalls past its lease, not retry_safe": partial(stalls, workflow=work.UNSAFE),
    "the same, told to run again too early": partial(stalls, workflow=work.UNSAFE, patient=False),
    "web killed between commit and send": web_deaths,
    "scheduler killed between commit and send": scheduler_deaths,
    "connection cut in the middle of a step": partial(redelivery, cause="cut"),
    "visibility timeout 5 s, step of 20 s": partial(redelivery, cause="visibility"),
    "doubled messages and kills at once": everything,
    "every message comes again, late": partial(messages, mode="late"),
    "messages for runs that were cancelled meanwhile": withdrawn,
    "worker killed between look and statement": partial(turns_tried, what="killed look"),
    "worker killed between statement and answer": partial(turns_tried, what="killed commit"),
    "database lost between look and statement": partial(turns_tried, what="cut look"),
    "database lost between statement and answer": partial(turns_tried, what="cut commit"),
    "two workers try one run at once": both_at_once,
    "the database's clock jumps": clock_jumps,
}
ONLY_REDIS = {"visibility timeout 5 s, step of 20 s"}
SHORT = {
    "redis": (
        "every message delivered twice",
        "every message lost once",
        "worker killed in a step, retry_safe",
        "worker stalls past its lease, retry_safe",
        "scheduler killed between commit and send",
        "visibility timeout 5 s, step of 20 s",
        "worker killed between look and statement",
        "database lost between statement and answer",
        "the database's clock jumps",
    ),
    "amqp": (
        "every message delivered twice",
        "every message lost once",
        "worker killed in a step, not retry_safe",
        "web killed between commit and send",
        "connection cut in the middle of a step",
        "messages for runs that were cancelled meanwhile",
        "worker killed between statement and answer",
        "two workers try one run at once",
    ),
}
