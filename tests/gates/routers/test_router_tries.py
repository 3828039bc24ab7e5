"""Calls that fail are made again, and a death in between leads to one answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from gates import services
from gates.models import Response, RouterCall
from gates.notify import outgoing
from gates.routers import calls, worker
from runs import sweep
from tests import factories
from tests.gates.routers.service import (
    ANSWERED,
    Service,
    asked,
    fresh,
    posted,
    refusals,
    router,
    serving,
    state,
    yes,
)

pytestmark = pytest.mark.django_db


def test_what_may_pass_is_tried_again_with_the_same_key_and_one_claim(service: Service) -> None:
    router(service)
    service.answers = [(503, b""), (429, b""), yes()]
    row = asked()

    posted()

    assert len({headers["Idempotency-Key"] for headers, _ in service.got}) == 1
    assert [headers["Obversa-Attempt"] for headers, _ in service.got] == ["1", "2", "3"]
    assert state(row) == ("answered", 3)
    assert factories.event_kinds(row.run) == ANSWERED


def test_a_service_that_never_answers_is_asked_five_times_and_the_question_given_back(
    service: Service,
) -> None:
    router(service)
    service.answers = [(500, b"")]
    row = asked()

    posted()

    assert len(service.got) == 5
    assert state(row) == ("failed", 5)
    assert fresh(row).status == "pending"
    assert "The host answered 500." in refusals(row)[-1]


def test_the_wait_is_a_time_in_the_table_and_hears_the_service(service: Service) -> None:
    router(service)
    service.answers, service.headers = [(503, b""), yes()], {"Retry-After": "30"}
    asked()
    call = RouterCall.objects.get()

    assert calls.make(call.pk)

    call.refresh_from_db()
    left = (call.next_at - timezone.now()).total_seconds()
    assert 25 < left <= 31
    assert calls.due() == []
    assert not calls.make(call.pk)


def test_no_connection_at_all_is_tried_again() -> None:
    with serving() as gone:
        made = router(gone)
    assert made.url
    row = asked()

    assert calls.make(RouterCall.objects.get().pk)

    assert state(row) == ("pending", 1)


class Killed(BaseException):
    """The process is gone."""


def test_whoever_dies_between_sending_and_recording_leads_to_one_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    router(service)
    row = asked()
    call = RouterCall.objects.get()

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(services, "submit", dies)
        with pytest.raises(Killed):
            calls.make(call.pk)
    assert state(row) == ("sending", 1)
    assert calls.due() == []
    RouterCall.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    posted()

    keys = {headers["Idempotency-Key"] for headers, _ in service.got}
    assert (len(service.got), len(keys)) == (2, 1)
    assert Response.objects.count() == 1
    assert factories.event_kinds(row.run) == ANSWERED


@pytest.mark.parametrize("point", ["_claim", "_end"])
def test_dying_anywhere_else_does_no_harm_either(
    service: Service, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    router(service)
    row = asked()
    call = RouterCall.objects.get()

    def dies(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(calls, point, dies)
        with pytest.raises(Killed):
            calls.make(call.pk)
    RouterCall.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    posted()

    assert state(row)[0] == "answered"
    assert Response.objects.count() == 1
    assert factories.event_kinds(row.run) == ANSWERED


def test_nothing_is_sent_while_a_run_is_locked(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import connection

    router(service)
    asked()
    blocks: list[int] = []
    true = outgoing.exchange

    def seen(*given: Any, **more: Any) -> Any:
        blocks.append(len(connection.savepoint_ids))
        return true(*given, **more)

    before = len(connection.savepoint_ids)
    monkeypatch.setattr(outgoing, "exchange", seen)
    posted()

    assert blocks == [before]


def test_the_sweep_makes_calls_that_everybody_forgot(service: Service) -> None:
    router(service)
    row = asked()
    RouterCall.objects.update(next_at=F("next_at") - timedelta(seconds=5))

    sweep.sweep()

    assert fresh(row).status == "answered"


@pytest.mark.django_db(transaction=True)
def test_the_threads_of_a_worker_post_what_is_due(service: Service) -> None:
    router(service)
    caller = worker.threads.begin()
    try:
        rows = [asked(gate_id=f"g{number}", stream=f"s{number}") for number in range(5)]
        caller.knock()
        factories_wait(lambda: Response.objects.count() == len(rows))
    finally:
        caller.end()

    assert {fresh(row).status for row in rows} == {"answered"}
    assert len(service.got) == len(rows)


def factories_wait(what: Any) -> None:
    import time

    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)
