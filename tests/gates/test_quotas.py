"""What one caller may have open at a time."""

from __future__ import annotations

import pytest
from django.conf import LazySettings

from gates import services
from gates.access import Forbidden
from gates.models import Request
from runs import fn_job
from runs import services as run_services
from runs.errors import TooManyOpen
from runs.models import Event, Run
from tests import factories, flows
from tests.gates.calls import code, program

pytestmark = pytest.mark.django_db
YES = {"approved": True}


def ask(number: int, stream: str = "s", by: str = "bot") -> Request:
    return factories.external_request(stream=stream, gate_id=f"g{number}", by=factories.key(by))


def test_one_more_open_question_than_allowed_is_refused_and_leaves_nothing(
    settings: LazySettings,
) -> None:
    settings.OBVERSA_MAX_OPEN_QUESTIONS = 2
    first, _ = ask(1), ask(2, stream="other")
    before = Event.objects.count()

    with pytest.raises(TooManyOpen, match="2 questions open"):
        ask(3)

    assert Event.objects.count() == before
    assert Request.objects.count() == 2
    services.submit(
        first.pk, principal=factories.ada(), token=None, digest=first.digest, response=YES
    )
    assert ask(3).status == "pending"


def test_the_same_question_and_one_that_takes_its_place_need_no_room(
    settings: LazySettings,
) -> None:
    settings.OBVERSA_MAX_OPEN_QUESTIONS = 1
    first = ask(1)

    assert ask(1).pk == first.pk
    newer = factories.external_request(stream="s", gate_id="g1", input={"n": 2})
    assert newer.status == "pending"
    assert ask(2, stream="t", by="another").status == "pending"


def test_streams_are_counted_with_runs(settings: LazySettings) -> None:
    settings.OBVERSA_MAX_OPEN_RUNS = 2
    ask(1, stream="a")
    ask(1, stream="b")

    with pytest.raises(TooManyOpen, match="2 runs and streams"):
        ask(1, stream="c")

    assert ask(2, stream="a").status == "pending"
    assert not Run.objects.filter(stream="c").exists()


def test_runs_under_way_are_counted_and_ended_ones_are_not(settings: LazySettings) -> None:
    settings.OBVERSA_MAX_OPEN_RUNS = 1
    run = flows.start(fn_job("a", str))

    with pytest.raises(TooManyOpen, match="1 runs"):
        run_services.start_run(run.workflow, {}, actor=flows.STARTER)

    assert run_services.start_run(run.workflow, {}, actor="user:9").pk != run.pk
    flows.work(run)
    assert run_services.start_run(run.workflow, {}, actor=flows.STARTER).pk != run.pk


def test_the_same_start_again_is_the_same_run_and_needs_no_room(settings: LazySettings) -> None:
    settings.OBVERSA_MAX_OPEN_RUNS = 1
    run = flows.start(fn_job("a", str), idempotency_key="once")

    again = run_services.start_run(run.workflow, {}, actor=flows.STARTER, idempotency_key="once")

    assert again.pk == run.pk


def test_nought_is_no_limit(settings: LazySettings) -> None:
    settings.OBVERSA_MAX_OPEN_QUESTIONS = settings.OBVERSA_MAX_OPEN_RUNS = 0

    assert [ask(number, stream=f"s{number}").status for number in range(3)] == ["pending"] * 3


def test_a_program_is_told_with_429(settings: LazySettings) -> None:
    settings.OBVERSA_MAX_OPEN_QUESTIONS = 1
    bot = program("asker")
    body = {
        "gateId": "a",
        "gateVersion": 1,
        "decisionText": "?",
        "responseSchema": {},
        "input": None,
        "stream": "s",
    }

    assert bot.post("/requests", body).status_code == 201
    assert bot.post("/requests", body).status_code == 200
    assert code(bot.post("/requests", body | {"gateId": "b"})) == (429, "too-many-open")


def test_a_stream_is_its_first_askers_and_an_operators() -> None:
    """Whoever takes a name first keeps others out, but not those who look after the place."""
    ask(1, stream="taken", by="squatter")

    with pytest.raises(Forbidden):
        ask(2, stream="taken", by="bot")
    operator = factories.key("rescuer", ["read", "start", "operate"])
    row = factories.external_request(stream="taken", gate_id="g2", by=operator)

    assert row.run.started_by == "key:squatter"
