"""Hard cases of runs in the service: races of schedulers and reviewers, and processes that die."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models import F

from runs import record, sweep
from runs.attempts import worker
from runs.drivers.context import Context
from runs.drivers.memory import run as run_here
from runs.kernel.conditions import failed, passed
from runs.kernel.outcomes import kickback
from runs.models import Attempt, Definition, Run
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from runs.turns import folding
from tests import flows

pytestmark = pytest.mark.django_db
BUSY = (Attempt.Status.READY, Attempt.Status.RUNNING)


def built(run: Run, name: str) -> int:
    """How often the node was really started."""
    starts = flows.events(run, "dag:node")
    return sum(
        event.fields.get("node") == name and event.fields.get("phase") == "start"
        for event in starts
    )


def die() -> None:
    """Every lease lapses, and the next process knows nothing but the record."""
    Attempt.objects.filter(status=Attempt.Status.RUNNING).update(
        lease_until=F("lease_until") - timedelta(minutes=1)
    )
    flows.forget()


@pytest.mark.django_db(transaction=True)
def test_two_schedulers_and_eight_workers_never_run_more_than_four_nodes() -> None:
    lock = threading.Lock()
    now = most = 0

    def body(ctx: Context) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        # The others of a full graph begin meanwhile; a fifth would be seen here.
        full.wait(0.2)
        with lock:
            now -= 1

    full = threading.Event()
    run = flows.start(dag("wide", {f"n{number}": fn_job("n", body) for number in range(6)}))
    handed_out: list[int] = []

    def act(index: int) -> None:
        while not flows.fresh(run).is_final:
            if index < 2:
                sweep.advance(run.pk)
            else:
                flows.work(run)
            handed_out.append(Attempt.objects.filter(run=run, status__in=BUSY).count())

    assert flows.at_once(10, act) == [None] * 10
    assert flows.fresh(run).status == "passed"
    assert most <= 4
    assert max(handed_out) <= 4
    assert [built(run, f"n{number}") for number in range(6)] == [1] * 6


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(5))
def test_two_reviewers_who_reject_at_once_lead_to_one_more_build(round_: int) -> None:
    both = threading.Barrier(2)

    def reject(ctx: Context) -> Any:
        if ctx.graph is not None and ctx.graph.attempt == 1:
            both.wait(20)
        return kickback(to="build", reason=f"{ctx.graph.attempt if ctx.graph else 0}")

    reviewer: dict[str, Any] = {"needs": ["build"], "accepts_kickback_to": ["build"]}
    job = dag(
        "pair",
        {
            "build": fn_job("build", lambda ctx: "built"),
            "left": {"job": fn_job("left", reject), **reviewer},
            "right": {"job": fn_job("right", reject), **reviewer},
        },
        max_kickbacks=1,
        stop_on_error=False,
    )
    run = flows.start(job)

    worker.execute(flows.ready(run)[0], onward=0)
    reviews = flows.ready(run)
    assert len(reviews) == 2
    flows.at_once(2, lambda index: worker.execute(reviews[index], onward=0))
    flows.work(run)

    assert flows.fresh(run).status == "failed"
    assert built(run, "build") == 2
    accepted = [e for e in flows.events(run, "dag:kickback") if e.fields.get("accepted")]
    assert len(accepted) == 1


def sent_back(reviews: list[Any], limit: int) -> Any:
    def build(ctx: Context) -> str:
        reviews.append(None if ctx.last_review is None else ctx.last_review.summary)
        return "built"

    def review(ctx: Context) -> Any:
        return kickback(to="build", reason="not yet")

    return pipeline(
        "again",
        [
            {"name": "build", "job": fn_job("build", build)},
            {
                "name": "review",
                "job": fn_job("review", review),
                "accepts_kickback_to": ["build"],
            },
        ],
        max_kickbacks=limit,
    )


def test_a_process_that_dies_after_a_send_back_costs_neither_the_feedback_nor_the_count() -> None:
    reviews: list[Any] = []
    run = flows.start(sent_back(reviews, 1))

    while found := flows.ready(run):
        flows.forget()

        worker.execute(found[0], onward=0)
        flows.forget()
        sweep.sweep()

    assert reviews == [None, "review sent this back: not yet"]
    assert flows.fresh(run).status == "failed"
    assert built(run, "build") == 2


def test_a_second_attempt_that_was_cut_short_is_asked_about_and_the_first_not_reused() -> None:
    reviews: list[Any] = []
    run = flows.start(sent_back(reviews, 1))

    for _ in range(2):
        worker.execute(flows.ready(run)[0], onward=0)
    flows.claimed(run)
    die()

    assert sweep.sweep().lost == 1

    assert reviews == [None]
    assert flows.statuses(run)["build"] == "waiting"
    [question] = flows.pending(run)
    assert question.gate_id.startswith("reconcile:")
    flows.answer(run, {"action": "run-again"})
    flows.work(run)
    assert reviews == [None, "review sent this back: not yet"]


@pytest.mark.parametrize("answer", ["finished", "run-again"])
def test_a_second_node_that_was_cut_short_is_named_and_repeated_only_when_told(answer: str) -> None:
    calls: list[str] = []
    job = pipeline(
        "two-steps",
        [
            {"name": "one", "job": fn_job("one", lambda ctx: calls.append("one"))},
            {"name": "two", "job": fn_job("two", lambda ctx: calls.append("two"))},
        ],
    )
    run = flows.start(job)

    worker.execute(flows.ready(run)[0], onward=0)
    flows.claimed(run)
    for _ in range(3):
        die()
        sweep.sweep()
    [question] = flows.pending(run)
    assert "two" in question.decision_text
    assert calls == ["one"]

    flows.answer(run, {"action": answer})
    flows.work(run)

    assert calls == ["one"] + ["two"] * (answer == "run-again")
    assert flows.fresh(run).status == "passed"
    assert flows.kinds(run).count("run:start") == 1


def test_what_the_record_says_of_repeating_wins_over_what_the_code_says_now() -> None:
    def job(*, safe: bool) -> Any:
        return pipeline(
            "kept", [{"name": "a", "job": fn_job("a", lambda ctx: "done", retry_safe=safe)}]
        )

    run = flows.start(job(safe=False))
    flows.claimed(run)
    flows.offer(job(safe=True))
    die()

    assert sweep.sweep().lost == 1

    assert flows.statuses(run)["a"] == "waiting"
    assert flows.ready(run) == []


def test_a_key_of_an_event_is_once_per_run_and_free_in_every_other() -> None:
    first, second = (flows.start(fn_job("a", str)) for _ in range(2))
    for run in (first, second):
        with record.turn(run.pk) as turn:
            turn.append("note", key="once")

    with pytest.raises(IntegrityError), record.turn(first.pk) as turn:
        turn.append("note", key="once")

    assert [flows.kinds(run).count("note") for run in (first, second)] == [1, 1]


def test_a_run_that_has_ended_is_not_run_again() -> None:
    calls: list[int] = []
    run = flows.ran(fn_job("a", lambda ctx: calls.append(1)))
    last_seq = run.last_seq

    for pk in Attempt.objects.filter(run=run).values_list("pk", flat=True):
        worker.execute(pk)
    sweep.advance(run.pk)
    sweep.sweep()

    assert calls == [1]
    assert (flows.fresh(run).status, flows.fresh(run).last_seq) == ("passed", last_seq)


@pytest.mark.parametrize("edit", [("Go on?", "Never mind?"), ("guarded", "open")])
def test_a_stored_definition_that_was_edited_runs_nothing(edit: tuple[str, str]) -> None:
    calls: list[int] = []
    job = pipeline(
        "guarded",
        [
            {"name": "ok", "job": approval("ok", "Go on?")},
            {"name": "send", "job": fn_job("send", lambda ctx: calls.append(1))},
        ],
    )
    run = flows.start(job)
    row = Definition.objects.get(pk=run.definition_id)
    text = json.dumps(row.shape)
    assert edit[0] in text
    edited = json.loads(text.replace(*edit))
    Definition.objects.filter(pk=row.pk).update(shape=edited)
    flows.forget()

    with pytest.raises(folding.DefinitionEdited, match="changed after"):
        sweep.advance(run.pk)

    assert calls == []


def test_a_stored_definition_with_its_keys_in_another_order_is_the_same() -> None:
    run = flows.start(fn_job("a", str))
    row = Definition.objects.get(pk=run.definition_id)
    Definition.objects.filter(pk=row.pk).update(shape=dict(reversed(row.shape.items())))
    flows.forget()

    flows.work(run)

    assert flows.fresh(run).status == "passed"


@pytest.mark.parametrize("where", ["script", "service"])
@pytest.mark.parametrize(
    ("status", "branches"), [("exhausted", {"failed"}), ("aborted", set()), ("pass", {"passed"})]
)
def test_a_branch_follows_what_its_need_came_to(
    status: str, branches: set[str], where: str
) -> None:
    calls: set[str] = set()

    def did(name: str) -> Any:
        return fn_job(name, lambda ctx: calls.add(name))

    job = dag(
        "branches",
        {
            "x": {"job": fn_job("x", lambda ctx: {"status": status}), "optional": True},
            "on-fail": {"job": did("failed"), "needs": ["x"], "when": failed("x")},
            "on-pass": {"job": did("passed"), "needs": ["x"], "when": passed("x")},
        },
    )

    ended = run_here(job).outcome.status if where == "script" else flows.ran(job).status

    assert calls == branches
    assert ended in ("pass", "passed")
