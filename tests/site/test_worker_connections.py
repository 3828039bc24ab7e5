"""What a worker's process keeps from one task to the next, and what it gives back."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]  # not in its stubs
from django.db import connection

from obversa_site.celery import app
from runs import tasks
from runs.attempts import worker


def test_celery_leaves_the_connections_to_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Mock()
    monkeypatch.setattr(DjangoWorkerFixup, "_close_database", closed)
    fixup: Any = DjangoWorkerFixup(app)
    task = Mock(request=Mock(is_eager=False))

    for _ in range(3):
        fixup.on_task_prerun(sender=task)
        fixup.on_task_postrun(sender=task)

    closed.assert_not_called()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fails", [False, True])
def test_a_task_gives_its_connection_back_however_it_ends(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    def execute(attempt: int, **_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        assert connection.connection is not None
        if fails:
            raise ZeroDivisionError

    monkeypatch.setattr(worker, "execute", execute)

    tasks.execute.apply((1,))

    assert connection.connection is None
