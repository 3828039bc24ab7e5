"""Sending what is due, one message at a time on each channel, in order.

A delivery is claimed by an UPDATE and a constraint keeps a second one of its channel out. It is
marked before its first byte leaves. Whoever dies before that mark leaves it to the next one; after
it nobody knows whether it arrived. A webhook is then told again, with the same id; a mail or a chat
message is not sent twice, and its log says so.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from django.db import IntegrityError, InterfaceError, OperationalError
from django.db.models import F, Min, Q
from structlog.contextvars import bound_contextvars

from gates.models import Channel, Delivery
from gates.notify import mail, message, quiet, service, webhook
from gates.notify.errors import NotSent
from gates.notify.message import Message
from gates.notify.recipients import why_not
from gates.notify.spread import preference_of
from runs import record, traces
from runs.attempts.steady import steadily
from runs.kernel.retries import RetryPolicy

logger = logging.getLogger(__name__)

POLICY: Final = RetryPolicy()
# Longer than any channel's own time limits together.
LEASE: Final = timedelta(seconds=180)
AT_ONCE: Final = 100
State = Delivery.State
_CHANCE: Final = random.SystemRandom()
_STOPPED: Final = "Obversa stopped while it was sent; it may have arrived."


def due_channels() -> list[int]:
    """The channels with something to send now, or with a sender that died."""
    now = record.database_now()
    due = Delivery.objects.filter(
        Q(state=State.PENDING, next_at__lte=now) | Q(state=State.SENDING, lease_until__lt=now),
        state__in=[State.PENDING, State.SENDING],  # so that delivery_open serves it
    )
    return list(due.order_by().values_list("channel", flat=True).distinct())


def seconds_until_due(longest: float, without: Iterable[int] = ()) -> float:
    """How long nothing is due by itself on the other channels, at most `longest`."""
    waiting = Delivery.objects.filter(state=State.PENDING).exclude(channel__in=list(without))
    first = waiting.aggregate(at=Min("next_at"))["at"]
    if first is None:
        return longest
    wait: float = (first - record.database_now()).total_seconds()
    return max(0.0, min(longest, wait))


def deliver(channel: int, *, seconds: float = 30.0) -> int:
    """Send what is due on the channel, for about so long; returns how many it looked at."""
    until = time.monotonic() + seconds
    handled = 0
    while handled < AT_ONCE and time.monotonic() < until:
        claimed = _claim(channel)
        if claimed is None:
            break
        with _told(claimed):
            _carry_out(claimed)
        handled += 1
    return handled


@contextmanager
def _told(delivery: Delivery) -> Iterator[None]:
    """A span, and lines of the log, that name the message and its run; never where it goes."""
    facts = {"delivery": str(delivery.uid)}
    if delivery.run_id is not None:
        facts["run_id"] = str(delivery.run_id)
    with (
        bound_contextvars(**facts),
        traces.span("obversa.notify", kind="client", channel=delivery.channel.kind, **facts),
    ):
        yield


def _claim(channel: int) -> Delivery | None:
    """The next delivery of the channel, now ours alone; None while there is nothing to do."""
    now = record.database_now()
    running = Delivery.objects.filter(channel=channel, state=State.SENDING).first()
    if running is not None:
        assert running.lease_until is not None
        if running.lease_until >= now:
            return None
        _lapsed(running)
    waiting = Delivery.objects.filter(channel=channel, state=State.PENDING)
    # What is tried again keeps its place before those after it.
    first = waiting.filter(Q(next_at__lte=now) | Q(attempts__gt=0)).order_by("pk").first()
    if first is None or first.next_at > now:
        return None
    try:
        won = Delivery.objects.filter(
            pk=first.pk, state=State.PENDING, attempts=first.attempts
        ).update(state=State.SENDING, attempts=F("attempts") + 1, lease_until=now + LEASE)
    except IntegrityError:
        return None  # delivery_one_at_a_time_per_channel: somebody else sends on this channel
    return _read(first.pk) if won else None


def _read(pk: int) -> Delivery:
    return Delivery.objects.select_related(
        "channel__user__preference", "channel__team", "request__run", "run"
    ).get(pk=pk)


def _carry_out(delivery: Delivery) -> None:
    channel = delivery.channel
    if reason := why_not(delivery):
        _end(delivery, State.WITHDRAWN, reason)
        return
    preference = preference_of(channel)
    now = record.database_now()
    morning = quiet.quiet_end(channel, preference, delivery.kind, now)
    if morning > now:
        _ours(delivery).update(
            state=State.PENDING,
            attempts=F("attempts") - 1,
            lease_until=None,
            held=True,
            next_at=morning,
        )
        return
    together = [delivery, *(_held_with(delivery) if delivery.held else ())]
    zone = quiet.zone_for(preference)
    alone = len(together) == 1
    try:
        said = message.message_for(delivery, zone) if alone else message.digest_of(together)
    except Exception:
        logger.exception("message not written delivery=%s", delivery.uid)
        _end(delivery, State.FAILED, "The message could not be written.")
        return
    if not _ours(delivery).update(on_wire=True):
        return
    _others(delivery, together).update(sent_with=delivery)
    try:
        _send(channel, delivery, said)
    except NotSent as failure:
        trouble: NotSent | None = failure
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.exception("message not sent delivery=%s", delivery.uid)
        trouble = NotSent(f"Not sent ({type(error).__name__}).", retryable=False)
    else:
        trouble = None
    # What the other side has taken must not be forgotten with the database that goes away now.
    steadily(lambda: _settle(delivery, trouble), patience=LEASE.total_seconds() / 2)


def _settle(delivery: Delivery, trouble: NotSent | None) -> None:
    if trouble is None:
        _end(delivery, State.SENT)
    else:
        _failed(delivery, trouble)


def _send(channel: Channel, delivery: Delivery, said: Message) -> None:
    match channel.kind:
        case Channel.Kind.MAIL:
            mail.send(channel, delivery, said)
        case Channel.Kind.SERVICE:
            service.send(channel.address, said)
        case Channel.Kind.WEBHOOK:
            webhook.send(channel, delivery, said)


def _held_with(delivery: Delivery) -> list[Delivery]:
    """What was held back on the same channel and is due as well, and may still be sent."""
    waiting = Delivery.objects.filter(
        channel=delivery.channel_id, state=State.PENDING, held=True, attempts=0,
        next_at__lte=record.database_now(),
    ).exclude(pk=delivery.pk)  # fmt: skip
    found = []
    for one in waiting.select_related("request__run", "run").order_by("pk")[:AT_ONCE]:
        one.channel = delivery.channel
        if reason := why_not(one):
            _end(one, State.WITHDRAWN, reason, was=State.PENDING)
        else:
            found.append(one)
    return found


def _ours(delivery: Delivery) -> Any:
    """The row while this claim of it holds; nobody who was too slow changes it any more."""
    return Delivery.objects.filter(pk=delivery.pk, state=State.SENDING, attempts=delivery.attempts)


def _others(delivery: Delivery, together: list[Delivery]) -> Any:
    keys = [one.pk for one in together if one.pk != delivery.pk]
    return Delivery.objects.filter(pk__in=keys, state=State.PENDING)


def _end(delivery: Delivery, state: str, error: str = "", *, was: str = State.SENDING) -> None:
    over: dict[str, Any] = {
        "state": state,
        "error": error,
        "done_at": record.database_now(),
        "lease_until": None,
        "on_wire": False,
    }
    mine = Delivery.objects.filter(pk=delivery.pk, state=was, attempts=delivery.attempts)
    if mine.update(**over) and was == State.SENDING:
        Delivery.objects.filter(sent_with=delivery, state=State.PENDING).update(**over)
    if state == State.FAILED:
        logger.warning("message not sent delivery=%s error=%s", delivery.uid, error)


def _failed(delivery: Delivery, failure: NotSent) -> None:
    if not failure.retryable or delivery.attempts >= POLICY.max_attempts:
        _end(delivery, State.FAILED, failure.text)
        return
    wait = POLICY.delay_ms(delivery.attempts, _CHANCE.random(), failure.hint_ms)
    _again(delivery, timedelta(milliseconds=wait), failure.text)


def _again(delivery: Delivery, wait: timedelta, error: str) -> None:
    back = _ours(delivery).update(
        state=State.PENDING,
        lease_until=None,
        on_wire=False,
        next_at=record.database_now() + wait,
        error=error,
    )
    if back:
        Delivery.objects.filter(sent_with=delivery, state=State.PENDING).update(sent_with=None)


def _lapsed(delivery: Delivery) -> None:
    """Whoever sent this is gone: once more if nothing left, or where its id tells it twice."""
    resent = not delivery.on_wire or delivery.channel.kind == Channel.Kind.WEBHOOK
    if resent and delivery.attempts < POLICY.max_attempts:
        _again(delivery, timedelta(), "Obversa stopped before it was sent.")
    else:
        _end(delivery, State.FAILED, _STOPPED)
