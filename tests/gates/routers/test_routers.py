"""A question goes to a service and its answer counts like anybody's, with the same rules."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from gates import services, signing
from gates.models import Response
from gates.routers import posting
from runs import approval, dag, fn_job
from runs.archive.verifying import verify_run
from runs.kernel.gate import validate_callback_request
from tests import factories, flows
from tests.gates.routers.service import (
    ANSWERED,
    SECRET,
    Service,
    asked,
    fresh,
    posted,
    refusals,
    router,
    state,
    yes,
)

pytestmark = pytest.mark.django_db
EIGHT = (
    *("requestId", "gateId", "gateVersion", "digest", "decisionText", "responseSchema"),
    *("input", "presentation"),
)


def test_the_service_gets_the_question_signed_and_its_reply_is_the_answer(
    service: Service,
) -> None:
    router(service)
    row = asked()

    posted()

    ((headers, body),) = service.got
    assert signing.verify(SECRET, body, headers, int(timezone.now().timestamp()))
    assert headers["Obversa-Router"] == "risk"
    question = service.questions[0]
    given = validate_callback_request({name: question[name] for name in EIGHT})
    assert given.digest == row.digest
    assert question["id"] == str(row.pk)
    answer = Response.objects.get(request=row)
    assert (answer.actor, answer.surface) == ("router:risk", "router")
    assert answer.response == {"approved": True}
    assert state(row) == ("answered", 1)
    assert factories.event_kinds(row.run) == ANSWERED
    assert verify_run(row.run).ok


def test_a_step_goes_on_with_the_answer_of_a_service(service: Service) -> None:
    router(service)
    job = dag(
        "flow",
        {
            "check": approval(
                "check",
                "Is it safe?",
                audience={"routers": ["risk"]},
                router="risk",
                input={"n": 1},
            ),
            "ship": {"job": fn_job("ship", lambda ctx: "shipped"), "needs": ["check"]},
        },
    )
    run = flows.ran(job)

    posted()

    flows.work(run)
    assert flows.statuses(run) == {"check": "passed", "ship": "passed"}
    assert service.questions[0]["input"] == {"n": 1}


def test_code_and_services_get_the_same_question_and_give_the_same_answer(
    service: Service,
) -> None:
    router(service)
    seen: list[Any] = []

    def decide(request: Any) -> dict[str, Any]:
        seen.append(request.to_wire())
        return {"approved": True}

    def flow(name: str, **how: Any) -> Any:
        return dag(name, {"check": approval("check", "Is it safe?", input={"n": 1}, **how)})

    by_code = flows.ran(flow("code", answer=decide))
    by_service = flows.ran(flow("http", audience={"routers": ["risk"]}, router="risk"))
    posted()
    flows.work(by_service)

    asked_of_service = {name: service.questions[0][name] for name in EIGHT}
    assert seen == [asked_of_service]
    answers = Response.objects.filter(request__run__in=[by_code, by_service])
    assert [one.response for one in answers] == [{"approved": True}] * 2
    assert {one.actor for one in answers} == {"step:code/check", "router:risk"}


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ((200, b"no json"), "no JSON"),
        ((200, []), "no object under response"),
        ((200, {"response": "yes"}), "no object under response"),
        ((200, {"response": {"approved": True}, "more": 1}), "more than response and seen"),
        ((200, {"response": {"approved": "yes"}}), "approved"),
        ((200, {"response": {}}), "approved"),
        ((204, b""), "no JSON"),
        ((200, b'{"response": {"x": "' + b"a" * posting.MAX_REPLY + b'"}}'), "too large"),
        ((404, b""), "404"),
        ((302, b""), "302"),
    ],
)
def test_a_bad_reply_gives_the_question_back_and_stands_in_the_record(
    service: Service, reply: Any, told: str
) -> None:
    router(service)
    service.answers = [reply]
    row = asked()

    posted()

    assert (fresh(row).status, fresh(row).holder) == ("pending", "")
    assert state(row) == ("failed", 1)
    assert told in refusals(row)[-1]
    assert factories.event_kinds(row.run).count("callback-released") == 1
    assert not Response.objects.exists()
    services.claim(row.pk, principal=factories.ada())


def test_a_yes_to_open_findings_wants_the_word_of_the_service_too(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gates.reviews import open_findings

    monkeypatch.setattr(open_findings, "_left_open", lambda state, path: ["a finding"])
    router(service)
    row = asked()
    posted()
    assert "open findings" in refusals(row)[-1]

    service.answers = [yes(seen=True)]
    other = asked(gate_id="another", stream="another")
    posted()

    assert fresh(other).status == "answered"
