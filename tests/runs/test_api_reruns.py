"""Retry and rerun, over REST and on the page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs import dag, fn_job
from runs.kernel.errors import LoopError
from runs.models import Run
from tests import factories, flows
from tests.gates.calls import Api, code

pytestmark = pytest.mark.django_db


def fails_at(name: str) -> Any:
    def body(ctx: Any) -> str:
        if ctx.path[-1] == name:
            raise ValueError("broken")
        return "done"

    nodes = {"a": {"job": fn_job("a", body)}, "b": {"job": fn_job("b", body), "needs": "a"}}
    return dag("g", nodes)


def waits() -> Any:
    def body(ctx: Any) -> str:
        raise LoopError("ENGINE", "the other side is away")

    policy = {"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000}
    return dag("g", {"call": {"job": fn_job("call", body), "retry": policy}})


def offered(job: Any, name: str = "again") -> str:
    return flows.offer(job, name=name, audience=factories.FOR_ADA)


def ran(caller: Api, name: str = "again") -> Run:
    run = Run.objects.get(pk=caller.post("/runs", {"workflow": name, "params": {}}).json()["id"])
    flows.work(run)
    return flows.fresh(run)


def test_a_failed_run_runs_again_from_its_failed_step(ada: Api) -> None:
    old = ran(ada, offered(fails_at("b")))
    assert old.status == "failed"
    offered(fails_at("nowhere"))

    told = ada.post(f"/runs/{old.pk}/rerun", {"fromStep": "b"})

    assert told.status_code == 201
    assert told.json()["rerunOf"] == str(old.pk)
    new = Run.objects.get(pk=told.json()["id"])
    flows.work(new)
    assert flows.fresh(new).status == "passed"
    assert [event.path for event in flows.events(new, "job:start")] == [("g", "b")]


@pytest.mark.parametrize("body", [{"fromStep": "nowhere"}, {"fromStep": ""}])
def test_a_step_that_cannot_be_first_is_a_conflict(ada: Api, body: dict[str, Any]) -> None:
    old = ran(ada, offered(fails_at("b")))
    assert code(ada.post(f"/runs/{old.pk}/rerun", body)) == (409, "not-over")


def test_a_run_that_goes_on_is_a_conflict(ada: Api) -> None:
    offered(fails_at("b"))
    run = ada.post("/runs", {"workflow": "again", "params": {}}).json()["id"]
    assert code(ada.post(f"/runs/{run}/rerun")) == (409, "not-over")
    assert code(ada.post(f"/runs/{run}/retry")) == (409, "not-retrying")


def test_a_wait_is_ended_by_whoever_may_operate(ada: Api) -> None:
    run = ran(ada, offered(waits()))
    assert run.status == "retry_pending"
    assert ada.get(f"/runs/{run.pk}").json()["displayStatus"] == "retry_pending"
    assert ada.post(f"/runs/{run.pk}/retry").status_code == 200
    flows.work(run)
    assert len(flows.events(run, "run.retry-pending")) == 2


def test_an_outsider_sees_nothing_to_run_again(ada: Api, client: Client) -> None:
    old = ran(ada, offered(fails_at("b")))
    client.force_login(factories.user("mallory"))
    for act in ("rerun", "retry"):
        assert client.post(f"/runs/{old.pk}/{act}/").status_code == 404
    assert Run.objects.count() == 1


def test_the_page_offers_both_and_leads_to_the_new_run(ada: Api, client: Client) -> None:
    old = ran(ada, offered(fails_at("b")))
    user = factories.ada().user
    assert user is not None
    client.force_login(user)
    page = client.get(f"/runs/{old.pk}/").content.decode()
    assert "Run again from b" in page
    answer = client.post(f"/runs/{old.pk}/rerun/", {"once": "0"})
    new = Run.objects.get(rerun_of=old)
    assert answer["Location"] == f"/runs/{new.pk}/"
    assert f"/runs/{old.pk}/" in client.get(f"/runs/{new.pk}/").content.decode()
    # The same click once more leads to the same run.
    client.post(f"/runs/{old.pk}/rerun/", {"once": "0"})
    assert old.reruns.count() == 1
