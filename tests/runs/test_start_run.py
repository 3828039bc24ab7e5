from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from runs import EXIT_PAUSED, approval, fn_job, loop, never, pipeline, services
from runs.models import Run
from tests import flows

pytestmark = pytest.mark.django_db
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def worker_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the command waits, the work is done."""
    CALLS.clear()
    monkeypatch.setattr("runs.management.commands.start_run.time.sleep", lambda _: flows.work())


def asking() -> Any:
    return pipeline(
        "asking",
        [
            {"name": "first", "job": fn_job("first", lambda ctx: CALLS.append("first"))},
            {"name": "ok", "job": approval("ok", "Go on?")},
        ],
    )


def start_run(job: Any, *options: str) -> tuple[int, list[str]]:
    out = StringIO()
    code = left_by(flows.offer(job), *options, out=out)
    return code, out.getvalue().splitlines()


def left_by(*arguments: str, out: StringIO | None = None) -> int:
    try:
        call_command("start_run", *arguments, stdout=out or StringIO())
    except SystemExit as left:
        return int(str(left.code))
    return 0


def test_a_run_is_started_and_its_id_printed() -> None:
    code, lines = start_run(asking())

    assert (code, lines) == (0, [str(Run.objects.get().pk)])
    assert CALLS == []


def broken(ctx: Any) -> None:
    raise ValueError("broke")


@pytest.mark.parametrize(
    ("job", "code", "status"),
    [
        (fn_job("good", lambda ctx: "done"), 0, "passed"),
        (fn_job("bad", broken), 1, "failed"),
        (loop("more", fn_job("again", lambda ctx: "no"), until=never, max=2), 2, "exhausted"),
        (asking(), EXIT_PAUSED, "waiting_for_gate"),
    ],
)
def test_the_exit_code_says_how_it_ended(job: Any, code: int, status: str) -> None:
    left, lines = start_run(job, "--wait")

    assert left == code
    assert json.loads(lines[-1])["status"] == status


def test_a_run_cancelled_meanwhile_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel(_: float) -> None:
        services.cancel_run(Run.objects.get().pk, actor="user:1")
        flows.work()

    monkeypatch.setattr("runs.management.commands.start_run.time.sleep", cancel)

    assert start_run(asking(), "--wait")[0] == 130


def test_started_five_times_by_hand_a_question_is_waited_for_and_no_step_repeated() -> None:
    assert start_run(asking(), "--wait")[0] == EXIT_PAUSED
    run = Run.objects.get()

    for _ in range(5):
        services.cancel_run(run.pk, actor="user:1")
        services.resume_run(run.pk, actor="user:1")
        flows.work(run)

    assert flows.fresh(run).status == "waiting"
    assert flows.kinds(run).count("callback-requested") == 1
    assert CALLS == ["first"]


def test_the_same_key_is_the_same_run_until_it_is_answered_and_after() -> None:
    name = flows.offer(asking())
    daily = (name, "--wait", "--idempotency-key", "asking 2026-01-01")
    assert left_by(*daily) == left_by(*daily) == EXIT_PAUSED
    run = Run.objects.get()

    flows.answer(run, {"approved": True})

    assert left_by(*daily) == left_by(*daily) == 0
    assert left_by(name, "--wait", "--idempotency-key", "asking 2026-01-02") == EXIT_PAUSED
    assert Run.objects.count() == 2
    assert CALLS == ["first", "first"]


def test_a_key_that_started_something_else_is_refused() -> None:
    left_by(flows.offer(asking()), "--idempotency-key", "k")

    with pytest.raises(CommandError, match="with other input"):
        left_by(flows.offer(fn_job("other", lambda ctx: "")), "--idempotency-key", "k")


@pytest.mark.parametrize("params", ["[]", "{", '{"n": NaN}', "@/no/such/file"])
def test_params_that_are_no_object_start_nothing(params: str) -> None:
    with pytest.raises(CommandError, match="--params"):
        start_run(asking(), "--params", params)

    assert not Run.objects.exists()


def test_a_workflow_that_is_not_there_is_an_error() -> None:
    with pytest.raises(CommandError, match="no-such"):
        call_command("start_run", "no-such")
