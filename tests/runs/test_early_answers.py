"""An answer that comes the moment its question can be read (interactions.md A8).

A question and the stop of its step are one turn, so nobody can come between the two; whoever is
quick comes while the asking worker still tells of it.
"""

from __future__ import annotations

import threading
from typing import Any, Literal
from uuid import UUID

import pytest
from django.db import connection

from gates.models import Request
from runs import approval, dag, fn_job, live, run
from runs.drivers.callbacks import CallbackClient, direct_router
from runs.kernel.gate import CallbackRequest
from runs.models import Run
from tests import flows
from tests.acting import FIRST, ONCE, Downstream, flow, publish_post

ASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "gate": (approval("ok", "Go on?"), {"approved": True}),
    "question": (fn_job("ask", lambda ctx: str(ctx.ask_questions(["Which?"]))), {"answer": "red"}),
    "approval": (fn_job("act", lambda ctx: str(ctx.call_tool("publish_post", FIRST))), ONCE),
}


@pytest.fixture
def downstream() -> Downstream:
    made = Downstream()
    publish_post(made)
    return made


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ASKS)
def test_an_answer_right_after_the_question_lets_its_run_go_on(
    kind: str, downstream: Downstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, response = ASKS[kind]
    hands: list[threading.Thread] = []
    ring = live.ring

    def answer(run_id: UUID) -> None:
        try:
            flows.answer(Run.objects.get(pk=run_id), response)
        finally:
            connection.close()

    def ringing(run_id: UUID, seq: int, *, inbox: bool) -> None:
        ring(run_id, seq, inbox=inbox)
        if not hands and Request.objects.filter(run=run_id, status="pending").exists():
            hands.append(threading.Thread(target=answer, args=(run_id,)))
            hands[0].start()

    monkeypatch.setattr(live, "ring", ringing)
    started = flows.ran(flow(job))
    hands[0].join(timeout=60)
    flows.work(started)

    assert flows.fresh(started).status == Run.Status.PASSED
    assert flows.kinds(started).count("callback-requested") == 1
    assert flows.kinds(started).count("callback-submitted") == 1
    assert len(downstream.sent) == (kind == "approval")


@pytest.mark.parametrize("kind", ASKS)
@pytest.mark.parametrize("mode", ["exit", "wait"])
def test_a_script_goes_on_with_an_answer_right_after_its_question(
    kind: str, mode: Literal["exit", "wait"], downstream: Downstream
) -> None:
    job, response = ASKS[kind]
    client = CallbackClient()

    def quick(_request: CallbackRequest) -> dict[str, Any]:
        return response

    def answer(event: dict[str, Any]) -> None:
        if event["kind"] == "callback-requested":
            (asked,) = client.list_pending()
            assert direct_router(client, asked, "ada", quick).ok

    first = run(dag("g", {"a": job}), callbacks=client, on_callback=mode, on_event=answer)
    if mode == "exit" and first.outcome.status == "paused":
        first = run(dag("g", {"a": job}), callbacks=client)

    assert first.outcome.status == "pass"
    kinds = [event["kind"] for event in client.history()]
    assert kinds == ["callback-requested", "callback-claimed", "callback-submitted"]
