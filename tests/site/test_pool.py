"""Connections that the server ended while they lay in the pool are not handed out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from runs.models import Run

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
SOME = 3


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(SOME) as made:
        yield made


def test_no_connection_that_the_server_ended_is_handed_out(threads: ThreadPoolExecutor) -> None:
    together = Barrier(SOME)
    connection.ensure_connection()  # none of those that are ended below

    def used(_: int) -> int:
        together.wait(20)  # so that every thread has a connection of its own
        try:
            Run.objects.count()
            together.wait(20)
            return int(connection.connection.info.backend_pid)
        finally:
            connection.close()

    before = set(threads.map(used, range(SOME)))
    assert len(before) == SOME
    with connection.cursor() as cursor:
        for pid in before:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    assert before.isdisjoint(threads.map(used, range(SOME)))
