"""A Celery worker sends: from a commit of a web process, past a receiver that hangs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gates.models import Delivery
from gates.notify import sender
from tests import factories, receivers
from tests.gates.notify import ways
from tests.services.conftest import Worker
from tests.services.test_celery import until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
TEAM = {"groups": ["Release"]}


def hold(free: threading.Event) -> None:
    free.wait(60)


def test_a_worker_posts_what_a_web_process_committed_and_hangs_on_nobody(
    start_worker: Worker, home: Path
) -> None:
    free = threading.Event()
    with receivers.receiver() as quick, receivers.receiver() as slow:
        slow.before = lambda: hold(free)
        ways.webhook_of("Release", slow.url)
        ways.webhook_of("Release", quick.url)
        sender._anybody.cache_clear()
        with start_worker(OBVERSA_NOTIFY_PRIVATE="1"):
            for number in range(3):
                factories.pending_gate(audience=TEAM, question=f"Release {number}?")
            until(lambda: len(quick.got) == 3 and slow.got, home)
            # Both slots of the worker are free while the other receiver still says nothing.
            assert len(slow.got) == 1
            free.set()
            until(lambda: Delivery.objects.filter(state="sent").count() == 6, home)

    for receiver in (quick, slow):
        assert [one["title"] for one in receiver.messages] == [f"Release {n}?" for n in range(3)]


def test_two_workers_and_their_sweeps_send_each_message_once(
    start_worker: Worker, home: Path
) -> None:
    with receivers.receiver() as hook:
        ways.webhook_of("Release", hook.url)
        sender._anybody.cache_clear()
        with (
            start_worker(OBVERSA_NOTIFY_PRIVATE="1", OBVERSA_TEST_MESSAGES="twice"),
            start_worker("-n", "second@%h", OBVERSA_NOTIFY_PRIVATE="1"),
        ):
            for number in range(10):
                factories.pending_gate(audience=TEAM, question=f"Release {number}?")
            until(lambda: Delivery.objects.filter(state="sent").count() == 10, home)

    assert [one["title"] for one in hook.messages] == [f"Release {n}?" for n in range(10)]
