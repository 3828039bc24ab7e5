"""Hard cases of one person's decision as a step, in a script and in the service."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.models import Request, Response
from runs import approval, dag, fn_job, pipeline, run
from runs.drivers.callbacks import CallbackClient
from runs.kernel.callbacks import SubmitResult
from tests import factories, flows

SECRET = "contact me@x.io, token=swordfish"


class RefusesOnce(CallbackClient):
    """A store that cannot take the first answer it is given."""

    left = 1

    def submit(self, *args: Any, **more: Any) -> SubmitResult:
        if self.left:
            self.left -= 1
            raise OSError("The disk is full.")
        return super().submit(*args, **more)


def test_an_answer_the_store_refuses_fails_the_step_and_the_next_run_passes() -> None:
    client = RefusesOnce()
    job = approval("ok", "Go on?", answer=lambda request: {"approved": True})

    first = run(job, callbacks=client)
    assert (first.outcome.status, len(client.list_pending())) == ("fail", 1)
    second = run(job, callbacks=client)

    assert (second.outcome.status, client.list_pending()) == ("pass", [])


def test_a_note_of_none_is_no_note() -> None:
    client = CallbackClient()
    given = {"approved": True, "note": None}

    result = run(approval("ok", "Go on?", answer=lambda request: given), callbacks=client)

    assert (result.outcome.status, result.outcome.data) == ("pass", {"approved": True})
    assert client.history()[-1]["response"] == {"approved": True}


@pytest.mark.django_db
@pytest.mark.parametrize("approved", [True, False])
def test_what_looks_like_a_secret_in_a_note_stays_in_the_answer_alone(*, approved: bool) -> None:
    job = pipeline(
        "noted",
        [
            {"name": "build", "job": fn_job("build", lambda ctx: "built")},
            {
                "name": "ok",
                "job": approval("ok", "Go on?", target="build", audience=factories.FOR_ADA),
                "accepts_kickback_to": ["build"],
            },
        ],
        max_kickbacks=0,
    )
    started = flows.ran(job)
    gate = Request.objects.get(run=started)

    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": approved, "note": SECRET},
    )
    flows.work(started)

    assert Response.objects.get(request=gate).response["note"] == SECRET
    told = [event for event in flows.events(started) if event.kind != "callback-submitted"]
    shown = str([dict(event.fields) for event in told]) + str(flows.steps(started)["ok"].outcome)
    assert "[redacted]" in shown
    assert "me@x.io" not in shown
    assert "swordfish" not in shown
    assert flows.fresh(started).status == ("passed" if approved else "failed")


@pytest.mark.django_db
def test_two_steps_that_ask_the_same_share_the_question_and_its_answer() -> None:
    same: dict[str, Any] = {"input": {"n": 1}}
    started = flows.ran(
        dag("twice", {"a": approval("ok", "Go on?", **same), "b": approval("ok", "Go on?", **same)})
    )
    [question] = flows.pending(started)

    flows.answer(started, {"approved": True})
    flows.work(started)

    assert flows.fresh(started).status == "passed"
    assert flows.kinds(started).count("callback-requested") == 1
    asked = [event.fields.get("asked") for event in flows.events(started, "job:end")]
    assert [one["requestId"] for one in asked if one] == [question.request_id] * 2
