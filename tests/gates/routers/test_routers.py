"""A question goes to a service and its answer counts like anybody's, with the same rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db.models import F
from django.test import Client
from django.utils import timezone

from gates import services, signing
from gates.errors import AlreadyClaimed, DefinitionRefused, KeyRefused
from gates.keys import create_key
from gates.models import Request, Response, Router, RouterCall
from gates.notify import outgoing
from gates.routers import calls, posting, worker
from runs import approval, dag, fn_job, http_router, sweep
from runs.kernel.errors import DeclarationError
from runs.kernel.gate import validate_callback_request
from runs.verifying import verify_run
from tests import factories, flows
from tests.gates.calls import Api, code, person
from tests.gates.routers.service import (
    SECRET,
    Service,
    asked,
    posted,
    router,
    serving,
    state,
    yes,
)

pytestmark = pytest.mark.django_db
CLAIMED_AND_ANSWERED = ["callback-requested", "callback-routed", "callback-claimed"]
EIGHT = (
    *("requestId", "gateId", "gateVersion", "digest", "decisionText", "responseSchema"),
    *("input", "presentation"),
)


@pytest.fixture(autouse=True)
def private(settings: Any) -> None:
    """The service of these tests is on this machine."""
    settings.OBVERSA_NOTIFY_PRIVATE = True


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        yield made


def fresh(row: Request) -> Request:
    return Request.objects.get(pk=row.pk)


def refusals(row: Request) -> list[str]:
    found = row.run.events.filter(kind="callback-refused").order_by("seq")
    return [event.payload["reason"] for event in found]


# --- the answer in the reply --------------------------------------------------------------------


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
    assert factories.event_kinds(row.run) == [*CLAIMED_AND_ANSWERED, "callback-submitted"]
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
    from gates import open_findings

    monkeypatch.setattr(open_findings, "_left_open", lambda state, path: ["a finding"])
    router(service)
    row = asked()
    posted()
    assert "open findings" in refusals(row)[-1]

    service.answers = [yes(seen=True)]
    other = asked(gate_id="another", stream="another")
    posted()

    assert fresh(other).status == "answered"


# --- the answer later ---------------------------------------------------------------------------


def service_key(made: Router, **more: Any) -> Api:
    _, text = create_key(f"{made.name}-key", ["read", "claim", "answer"], router=made, **more)
    return Api(Client(), {"Authorization": f"Bearer {text}"})


def test_a_service_answers_later_with_its_own_key(service: Service) -> None:
    made = router(service)
    service.answers = [(202, b"")]
    row = asked()
    posted()
    assert (fresh(row).status, fresh(row).holder) == ("claimed", "router:risk")
    assert state(row) == ("waiting", 1)
    with pytest.raises(AlreadyClaimed):
        services.claim(row.pk, principal=factories.ada())

    told = service_key(made).post(
        f"/requests/{row.pk}/submit", {"digest": row.digest, "response": {"approved": False}}
    )

    assert told.status_code == 200
    assert told.json()["actor"] == "router:risk"
    assert Response.objects.get().actor == "router:risk"


def test_its_key_is_the_router_and_nothing_else(service: Service) -> None:
    made = router(service)
    router(service, "other")
    mine, theirs = asked(), asked("other", gate_id="other")
    for_people = factories.external_request(gate_id="people")
    for_all = factories.external_request(gate_id="everyone", audience={})
    api = service_key(made)

    assert [one["id"] for one in api.get("/requests").json()["items"]] == [str(mine.pk)]
    for row in (theirs, for_people, for_all):
        assert code(api.post(f"/requests/{row.pk}/claim")) == (404, "not-found")
    assert code(api.get(f"/runs/{for_people.run_id}")) == (404, "not-found")
    assert code(api.post("/requests", {})) in ((403, "scope"), (422, "validation"))
    claimed = api.post(f"/requests/{mine.pk}/claim", {"routerId": "x"}).json()
    assert claimed["routerId"] == "router:risk"

    Router.objects.filter(pk=made.pk).update(enabled=False)
    assert code(api.get("/requests")) == (403, "scope")


def test_the_key_of_a_router_may_do_no_more_than_a_router(service: Service) -> None:
    made = router(service)

    with pytest.raises(KeyRefused, match="may only"):
        create_key("k", ["operate"], router=made)
    with pytest.raises(KeyRefused, match="nobody's"):
        create_key("k", ["answer"], factories.user("ada"), router=made)


def test_the_command_makes_such_a_key(service: Service) -> None:
    router(service)
    out = StringIO()

    call_command("create_key", "k", "--scope", "answer", "--router", "risk", stdout=out)

    assert "k as risk may: answer" in out.getvalue()
    with pytest.raises(CommandError, match="no router"):
        call_command("create_key", "k2", "--scope", "answer", "--router", "nobody")


# --- who may ------------------------------------------------------------------------------------


def test_the_audience_has_to_name_the_router(service: Service) -> None:
    router(service)

    with pytest.raises(DefinitionRefused, match="audience has to name") as refused:
        asked(audience={"users": ["ada"]})
    assert refused.value.field == "router"
    with pytest.raises(DeclarationError, match="audience has to name"):
        approval("a", "Go?", router="risk")
    with pytest.raises(DeclarationError, match="no person"):
        approval("a", "Go?", router="risk", audience={"routers": ["risk"]}, needed=2)


def test_a_service_that_started_the_run_cannot_answer_what_its_asker_may_not(
    service: Service,
) -> None:
    router(service)
    row = asked(excludeRequester=True)
    Request.objects.filter(pk=row.pk).update(asked_by="router:risk")

    posted()

    assert not service.got
    assert state(row) == ("failed", 1)
    assert any("cannot answer" in told for told in refusals(row))


def test_a_router_that_is_not_here_leaves_the_question_to_people(service: Service) -> None:
    row = asked("nobody")

    posted()

    assert fresh(row).status == "pending"
    assert "no router 'nobody' here" in refusals(row)[-1]
    services.claim(row.pk, principal=factories.ada())


def test_a_question_that_is_held_or_closed_is_not_sent(service: Service) -> None:
    router(service)
    row = asked()
    services.claim(row.pk, principal=factories.ada())
    call = RouterCall.objects.get()

    assert calls.make(call.pk)
    assert (state(row), len(service.got)) == (("pending", 0), 0)

    services.withdraw(row.pk, principal=factories.operator(), reason="no need")
    posted()
    assert (state(row)[0], len(service.got)) == ("withdrawn", 0)


def test_sensitive_values_go_only_to_a_router_that_may_see_them(service: Service) -> None:
    router(service)
    router(service, "trusted", sees_sensitive=True)
    hints = {"sensitive": ["/password"]}
    asked(input={"password": "s3cret"}, presentation=hints)
    asked("trusted", gate_id="other", input={"password": "s3cret"}, presentation=hints)

    posted()

    told = {one["gateId"]: (one["input"]["password"], one["masked"]) for one in service.questions}
    assert told == {"release-approval": ("[masked]", ["/password"]), "other": ("s3cret", [])}


# --- tries --------------------------------------------------------------------------------------


def test_what_may_pass_is_tried_again_with_the_same_key_and_one_claim(service: Service) -> None:
    router(service)
    service.answers = [(503, b""), (429, b""), yes()]
    row = asked()

    posted()

    assert len({headers["Idempotency-Key"] for headers, _ in service.got}) == 1
    assert [headers["Obversa-Attempt"] for headers, _ in service.got] == ["1", "2", "3"]
    assert state(row) == ("answered", 3)
    assert factories.event_kinds(row.run) == [*CLAIMED_AND_ANSWERED, "callback-submitted"]


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
    assert factories.event_kinds(row.run) == [*CLAIMED_AND_ANSWERED, "callback-submitted"]


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
    assert factories.event_kinds(row.run) == [*CLAIMED_AND_ANSWERED, "callback-submitted"]


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
    caller = worker.Caller()
    caller.start()
    try:
        rows = [asked(gate_id=f"g{number}", stream=f"s{number}") for number in range(5)]
        caller.knock()
        factories_wait(lambda: Response.objects.count() == len(rows))
    finally:
        caller.stop()

    assert {fresh(row).status for row in rows} == {"answered"}
    assert len(service.got) == len(rows)


def factories_wait(what: Any) -> None:
    import time

    until = time.monotonic() + 20
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


# --- addresses ----------------------------------------------------------------------------------


def test_an_author_gives_an_address_with_the_secret_in_the_environment(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RISK_SECRET", SECRET)
    made = http_router(service.url, name="risk-engine", secret_env="RISK_SECRET")
    job = dag(
        "flow",
        {"check": approval("check", "Ok?", audience={"routers": ["risk-engine"]}, router=made)},
    )
    run = flows.ran(job)

    posted()

    ((headers, body),) = service.got
    assert signing.verify(SECRET, body, headers, int(timezone.now().timestamp()))
    assert Response.objects.get().actor == "router:risk-engine"
    assert SECRET not in str([event.fields for event in flows.events(run)])


@pytest.mark.parametrize(
    "given",
    [
        {"url": "ftp://x", "secret_env": "S"},
        {"url": "https://", "secret_env": "S"},
        {"url": "https://user:pw@host/", "secret_env": "S"},
        {"url": "https://host/", "secret_env": "lower"},
        {"url": "https://host/", "secret_env": "S", "name": "a b"},
        {"url": None, "secret_env": "S"},
    ],
)
def test_an_address_that_is_none_is_refused_where_it_is_written(given: dict[str, Any]) -> None:
    url = given.pop("url")
    with pytest.raises(DeclarationError, match="http_router"):
        http_router(url, **given)


def test_nobody_gives_an_address_over_the_api() -> None:
    ada = person(factories.person("ada", perms=["runs.add_run"]))
    body = {
        "gateId": "g",
        "gateVersion": 1,
        "decisionText": "?",
        "responseSchema": {},
        "input": {},
        "stream": "s",
        "audience": {"routers": ["r"]},
    }

    for wrong in ({"name": "r", "url": "http://127.0.0.1/", "secretEnv": "PATH"}, "http://x/"):
        told = ada.post("/requests", {**body, "router": wrong})
        assert told.status_code == 422


def test_a_private_address_is_not_called(service: Service, settings: Any) -> None:
    router(service)
    settings.OBVERSA_NOTIFY_PRIVATE = False
    row = asked()

    posted()

    assert not service.got
    assert state(row) == ("failed", 1)
    with pytest.raises(ValidationError):
        Router(name="x", url="http://169.254.169.254/", secret=SECRET).full_clean()


def test_the_admin_sets_routers_up_and_does_not_show_their_secret(service: Service) -> None:
    made = router(service)
    root = factories.user("root")
    root.is_staff = root.is_superuser = True
    root.save()
    client = Client()
    client.force_login(root)
    path = f"/admin/gates/router/{made.pk}/change/"

    assert SECRET not in client.get(path).content.decode()
    sent = {"url": made.url, "secret": "", "timeout_seconds": 5, "enabled": "on"}
    assert client.post(path, sent).status_code == 302

    made.refresh_from_db()
    assert (made.secret, made.timeout_seconds) == (SECRET, 5)
    short = client.post(path, {**sent, "secret": "short"})
    assert "at least" in short.content.decode()
    assert client.get("/admin/gates/routercall/").status_code == 200
