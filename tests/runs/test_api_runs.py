from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import dag, fn_job
from runs.models import Event, Run, Workflow
from tests import factories, flows
from tests.gates.calls import Api, code, program
from tests.stores import place

pytestmark = pytest.mark.django_db

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PARAMS = {
    "type": "object",
    "properties": {"version": {"type": "string"}, "dry": {"type": "boolean", "default": False}},
    "required": ["version"],
}


@pytest.fixture
def ship() -> str:
    job = dag("ship", {"ship": {"job": fn_job("ship", lambda ctx: "shipped")}})
    return flows.offer(job, name="ship", params=PARAMS, audience=factories.FOR_ADA)


def start(caller: Api, **body: Any) -> Any:
    return caller.post("/runs", {"workflow": "ship", "params": {"version": "1"}, **body})


def test_a_started_run_has_the_shape_that_programs_rely_on(ada: Api, ship: str) -> None:
    told = start(ada, labels={"team": "platform"})

    assert told.status_code == 201
    body = told.json()
    assert body.pop("url").endswith(f"/runs/{body['id']}/")
    assert TIME.fullmatch(body.pop("createdAt"))
    body.pop("startedAt")
    assert Run.objects.get(pk=body.pop("id")).workflow == "ship"
    assert body == {
        "workflow": "ship",
        "title": "A flow of a test",
        "kind": "workflow",
        "status": "queued",
        "displayStatus": "queued",
        "waitingOn": [],
        "heldReason": "",
        "outcome": None,
        "overridden": False,
        "params": {"version": "1", "dry": False},
        "labels": {"team": "platform"},
        "stream": "",
        "conversation": "",
        "startedBy": factories.ada().actor,
        "rerunOf": None,
        "priority": 0,
        "queuePosition": None,
        "queuedFor": [],
        "archive": None,
        "archivedAt": None,
        "progress": {"done": 0, "total": 1},
        "lastSeq": body["lastSeq"],
        "endedAt": None,
        "cancelRequestedAt": None,
    }


def test_the_same_key_starts_one_run(ada: Api, ship: str) -> None:
    send = {"workflow": "ship", "params": {"version": "1"}}
    first = ada.post("/runs", send, **{"Idempotency-Key": "release-1"})
    again = ada.post("/runs", send, **{"Idempotency-Key": "release-1"})
    other = ada.post(
        "/runs", {**send, "params": {"version": "2"}}, **{"Idempotency-Key": "release-1"}
    )

    assert first.json() == again.json()
    assert code(other) == (409, "idempotency-conflict")
    assert other.json()["error"]["field"] == "Idempotency-Key"
    assert Run.objects.count() == 1
    start(ada)
    start(ada)
    assert Run.objects.count() == 3


@pytest.mark.parametrize("key", ["x" * 201, "a\x7fb", "é"])
def test_a_key_that_is_no_header_text_is_refused(ada: Api, ship: str, key: str) -> None:
    refused = ada.post("/runs", {"workflow": "ship"}, **{"Idempotency-Key": key})

    assert code(refused) == (422, "validation")
    assert refused.json()["error"]["field"] == "Idempotency-Key"


def test_parameters_that_do_not_fit_are_named(ada: Api, ship: str) -> None:
    refused = start(ada, params={"version": 7})

    assert code(refused) == (422, "params")
    assert refused.json()["error"]["details"]["fields"][0]["field"] == "version"
    assert Run.objects.count() == 0


def test_who_may_start_what(ada: Api, ben: Api, cyd: Api, ship: str) -> None:
    assert code(start(ben)) == (403, "forbidden")
    assert code(start(cyd)) == (404, "not-found")
    assert code(ada.post("/runs", {"workflow": "other"})) == (404, "not-found")
    assert Run.objects.count() == 0
    assert start(ada).status_code == 201


def test_a_broken_workflow_is_listed_with_its_error_and_not_started(ada: Api, ship: str) -> None:
    Workflow.objects.filter(name=ship).update(error="SyntaxError: line 3", definition=None)

    assert ada.get("/workflows").json()["items"][0]["error"] == "SyntaxError: line 3"
    assert code(start(ada)) == (409, "workflow-broken")


def test_the_catalogue_tells_what_each_workflow_takes(ada: Api, cyd: Api, ship: str) -> None:
    assert ada.get("/workflows").json() == {
        "items": [
            {
                "name": "ship",
                "title": "A flow of a test",
                "description": "",
                "params": PARAMS,
                "audience": {"users": ["ada"]},
            }
        ],
        "next": None,
    }
    assert cyd.get("/workflows").json() == {"items": [], "next": None}


def test_the_catalogue_goes_page_by_page(ada: Api) -> None:
    for name in ("a", "b", "c"):
        flows.offer(fn_job("f", lambda ctx: None), name=name, audience=factories.FOR_ADA)

    first = ada.get("/workflows", limit=2).json()
    second = ada.get("/workflows", limit=2, cursor=first["next"]).json()

    assert [row["name"] for row in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next"] is None


def test_runs_are_listed_newest_first_and_page_by_page(ben: Api) -> None:
    made = [str(factories.make_run().pk) for _ in range(5)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}

    while True:
        page = ben.get("/runs", **query).json()
        seen += [row["id"] for row in page["items"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]

    assert seen == made[::-1]


def test_runs_are_found_by_status_workflow_and_words(ben: Api) -> None:
    waits = factories.make_run(workflow="release")
    ended = flows.ran(fn_job("f", lambda ctx: None), name="nightly")
    stream = factories.external_request(stream="release-bot").run

    def found(**query: Any) -> set[str]:
        return {row["id"] for row in ben.get("/runs", **query).json()["items"]}

    assert found(status="passed") == {str(ended.pk)}
    assert found(status=["passed", "waiting"]) == {str(ended.pk), str(waits.pk), str(stream.pk)}
    assert found(workflow="nightly") == {str(ended.pk)}
    assert found(q="RELEASE") == {str(waits.pk), str(stream.pk)}
    assert found(q=str(ended.pk)[:8]) == {str(ended.pk)}
    assert found(q="nothing like it") == set()


def test_a_waiting_run_says_for_what(ben: Api) -> None:
    run = factories.pending_gate().run

    told = ben.get(f"/runs/{run.pk}").json()

    assert (told["status"], told["displayStatus"]) == ("waiting", "waiting_for_gate")
    assert told["waitingOn"] == ["gate"]


def test_a_list_of_runs_costs_the_same_for_one_and_for_thirty(ben: Api) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            ben.get("/runs", limit=100)
        return len(queries)

    factories.make_run()
    ben.get("/runs")
    alone = cost()
    for _ in range(29):
        factories.make_run()

    assert cost() == alone


def test_cyd_sees_nothing_of_a_run_and_ben_only_looks(ben: Api, cyd: Api) -> None:
    run = factories.pending_gate().run
    reads = ("", "/events", "/stream", "/artifacts/sha256:" + "0" * 64)

    assert cyd.get("/runs").json()["items"] == []
    for path in reads:
        assert code(cyd.get(f"/runs/{run.pk}{path}")) == (404, "not-found"), path
    for act in ("cancel", "resume"):
        assert code(cyd.post(f"/runs/{run.pk}/{act}")) == (404, "not-found")
        assert code(ben.post(f"/runs/{run.pk}/{act}")) == (403, "forbidden")
    assert ben.get(f"/runs/{run.pk}").status_code == 200
    run.refresh_from_db()
    assert run.status == "waiting"
    assert code(ben.get(f"/runs/{uuid4()}")) == (404, "not-found")


def test_a_run_is_cancelled_and_resumed_by_whoever_started_it(ada: Api) -> None:
    run = factories.make_run(started_by=factories.ada().actor)

    cancelled = ada.post(f"/runs/{run.pk}/cancel", {"reason": "wrong branch"})
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert code(ada.post(f"/runs/{run.pk}/cancel")) == (409, "ended")
    resumed = ada.post(f"/runs/{run.pk}/resume")
    assert (resumed.status_code, resumed.json()["status"]) == (200, "waiting")
    assert code(ada.post(f"/runs/{run.pk}/resume")) == (409, "not-paused")

    kinds = factories.event_kinds(run, prefix="run:")
    assert kinds == ["run:start", "run:cancel-requested", "run:end", "run:start"]


def test_cancel_takes_no_body_at_all(ada: Api) -> None:
    run = factories.make_run(started_by=factories.ada().actor)

    response = ada._client.post(f"/api/v1/runs/{run.pk}/cancel")

    assert response.status_code == 200


# The record


def test_events_carry_the_fields_of_their_kind_beside_the_envelope(ben: Api) -> None:
    run = factories.make_run(params={"n": 1e-7})

    told = ben.get(f"/runs/{run.pk}/events").json()

    assert told["head"] == told["items"][-1]["seq"] == run.last_seq
    first = told["items"][0]
    assert TIME.fullmatch(first.pop("ts"))
    assert first == {
        "seq": 1,
        "kind": "run:start",
        "path": [],
        "actor": "user:0",
        "surface": "browser",
        "runId": str(run.pk),
        "session": 1,
        "params": {"n": 1e-7},
    }


def test_events_are_read_from_a_number_on(ben: Api) -> None:
    run = factories.make_run()

    part = ben.get(f"/runs/{run.pk}/events", after=1, limit=2).json()
    none = ben.get(f"/runs/{run.pk}/events", after=run.last_seq).json()

    assert [event["seq"] for event in part["items"]] == [2, 3]
    assert part["head"] == run.last_seq
    assert none == {"items": [], "head": run.last_seq}


@pytest.mark.parametrize(
    ("query", "field"),
    [("after=-1", "after"), ("after=x", "after"), (f"after={2**63}", "after"),
     ("limit=0", "limit"), ("wait=31", "wait"), ("wait=-1", "wait"), ("wait=nan", "wait")],
)  # fmt: skip
def test_a_place_that_is_none_is_refused(ben: Api, query: str, field: str) -> None:
    run = factories.make_run()

    refused = ben.get(f"/runs/{run.pk}/events?{query}")

    assert code(refused) == (422, "validation")
    assert refused.json()["error"]["field"] == field


# Files


def stored(name: str, media_type: str, content: bytes = b"<script>1</script>") -> Run:
    def attach(ctx: Any) -> None:
        ctx.attach(name, content, media_type)

    return flows.ran(fn_job("attach", attach), name="files")


def test_a_file_is_a_download_and_never_a_page(ben: Api) -> None:
    run = stored('a "b" é.html', "text/html")
    digest = run.artifacts.get().digest

    response = ben.get(f"/runs/{run.pk}/artifacts/{digest}")

    assert b"".join(response.streaming_content) == b"<script>1</script>"
    assert response.headers["Content-Type"] == "text/html"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert "%C3%A9.html" in response.headers["Content-Disposition"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert response.headers["Content-Length"] == "18"


@pytest.mark.parametrize("media_type", ["text/html; x=1\t", "nonsense", "", "text/hté"])
def test_a_media_type_that_is_none_becomes_bytes(ben: Api, media_type: str) -> None:
    run = stored("a.bin", media_type)

    response = ben.get(f"/runs/{run.pk}/artifacts/{run.artifacts.get().digest}")

    assert response.headers["Content-Type"] == "application/octet-stream"
    assert b"".join(response.streaming_content)


def test_a_file_belongs_to_its_run(ben: Api) -> None:
    run = stored("a.txt", "text/plain", b"one")
    digest = run.artifacts.get().digest
    other = factories.make_run()

    assert code(ben.get(f"/runs/{other.pk}/artifacts/{digest}")) == (404, "not-found")
    for wrong in ("sha256:0", "..", "%00", "sha256:" + "g" * 64):
        assert ben.get(f"/runs/{run.pk}/artifacts/{wrong}").status_code == 404
    place(digest).unlink()
    assert code(ben.get(f"/runs/{run.pk}/artifacts/{digest}")) == (404, "artifact-missing")


def test_numbers_and_texts_go_out_as_they_were_stored(ada: Api) -> None:
    params = {"n": 1e21, "s": "\u2028é\0", "big": 2**53}
    run = factories.make_run(params=params, started_by=factories.ada().actor)

    text = ada.get(f"/runs/{run.pk}").content.decode()

    assert json.loads(text)["params"] == params
    assert "é" in text


def test_a_key_starts_a_run_of_its_own() -> None:
    bot = program("deploy-bot")
    flows.offer(fn_job("f", lambda ctx: None), name="bots", audience={"keys": ["deploy-bot"]})

    told = bot.post("/runs", {"workflow": "bots"})

    assert told.json()["startedBy"] == "key:deploy-bot"
    first = Event.objects.get(run=told.json()["id"], seq=1)
    assert first.surface == "api"
