from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gates import services
from runs import catalogue, fn_job, queries, registry
from runs import services as run_services
from runs.artifacts import store
from runs.kernel.events import Event
from runs.models import Artifact, Run
from runs.pages import event_lines, run_graph, run_list, step_views
from tests import factories, flows
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db
FOR_ADA = {"users": ["ada"]}


def run_for_ada(**facts: Any) -> Run:
    return factories.make_run(audience=FOR_ADA, **facts)


def statements(client: Any, address: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


@pytest.mark.parametrize("tab", ["all", "waiting"])
def test_thirty_runs_take_as_many_statements_as_one(tab: str) -> None:
    client = client_of(factories.ada())
    run_for_ada()
    statements(client, f"/runs/?tab={tab}")
    few = statements(client, f"/runs/?tab={tab}")
    for _ in range(29):
        run_for_ada()

    assert statements(client, f"/runs/?tab={tab}") == few


def test_a_run_that_waits_says_for_what_in_the_list_and_on_its_page() -> None:
    run = run_for_ada(params={"version": "2.0.0"})
    client = client_of(factories.ada())

    row = page_of(client.get("/runs/")).by_id(f"run-row-{run.pk}")
    assert "Approve release abc123?" in row.text
    assert "2.0.0" in row.text
    page = page_of(client.get(run.get_absolute_url()))
    assert page.by_id("run-status").get("data-status") == "waiting"
    assert "waits for 1 answer" in page.by_id("run-status").text
    assert "Approve release abc123?" in page.by_id("run-waiting").text
    assert [one.get("data-status") for one in page.by_id("run-steps").children] == [
        "waiting",
        "idle",
    ]
    assert [one.text for one in page.all(class_="event-kind")][-1] == "step waits"


def test_a_cancelled_run_waits_for_nothing_and_keeps_its_question() -> None:
    run = run_for_ada(started_by=f"user:{factories.ada().user.pk}")  # type: ignore[union-attr]  # ada is a person
    client = client_of(factories.ada())
    assert client.post(f"/runs/{run.pk}/cancel/").status_code == 302

    page = page_of(client.get(run.get_absolute_url()))

    assert page.by_id("run-status").get("data-status") == "cancelled"
    assert page.by_id("run-waiting").text == ""
    step = page.by_id("run-steps").children[0]
    assert step.get("data-status") == "cancelled"
    assert "question kept" in step.text


@pytest.mark.parametrize("act", ["cancel", "resume"])
def test_an_act_on_a_run_is_for_who_started_it(act: str) -> None:
    run = run_for_ada()
    address = f"/runs/{run.pk}/{act}/"

    assert client_of(factories.cyd()).post(address).status_code == 404
    assert client_of(factories.ada()).post(address).status_code == 403
    assert client_of(factories.ben()).get(address).status_code == 405


def unread(answer: Any) -> Any:
    """The answer with its file closed; `close()` would close the test's connection as well."""
    for close in answer._resource_closers:
        close()
    return answer


def test_a_run_and_its_files_are_seen_by_whom_they_are_for() -> None:
    run = run_for_ada()
    digest, size = store.keep(b"<script>alert(1)</script>")
    Artifact.objects.create(
        run=run, digest=digest, name="../evil\r\n.html", size=size, seq=1,
        created_at=run.created_at, media_type="text/html",
    )  # fmt: skip
    address = reverse("runs:artifact", args=[run.pk, digest])
    for who, status in ((factories.ada(), 200), (factories.ben(), 200), (factories.cyd(), 404)):
        assert client_of(who).get(run.get_absolute_url()).status_code == status
        file = unread(client_of(who).get(address))
        assert file.status_code == status

    file = unread(client_of(factories.ada()).get(address))
    assert file["Content-Disposition"].startswith("attachment;")
    assert file["X-Content-Type-Options"] == "nosniff"
    assert "\n" not in file["Content-Disposition"]


def test_the_form_of_a_workflow_keeps_what_was_typed_and_names_what_is_wrong() -> None:
    registry.refresh()
    client = client_of(factories.person("ada", perms=["runs.add_run"]))
    page = page_of(client.get("/workflows/release/start/"))
    assert page.one("input", name="f-revision").get("value") == "HEAD"

    response = client.post("/workflows/release/start/", {"f-version": "no version"})

    assert response.status_code == 422
    page = page_of(response)
    assert page.one("input", name="f-version").get("value") == "no version"
    assert page.one("input", name="f-version").get("aria-invalid") == "true"
    assert page.one("input", name="f-repository").get("aria-invalid") == "true"
    assert not Run.objects.exists()


def test_a_form_sent_twice_starts_one_run() -> None:
    registry.refresh()
    client = client_of(factories.person("ada", perms=["runs.add_run"]))
    page = page_of(client.get("/workflows/release/start/"))
    once = page.one("input", name="once").attributes["value"]
    given = {"f-repository": "/nowhere", "f-version": "1.0.0", "f-push": "false", "once": once}

    first = client.post("/workflows/release/start/", given)
    second = client.post("/workflows/release/start/", given)

    assert first["Location"] == second["Location"]
    assert Run.objects.count() == 1
    other = client.post("/workflows/release/start/", given | {"f-version": "1.0.1"})
    assert other.status_code == 422
    assert "started a run already" in page_of(other).one(role="alert").text
    fresh = page_of(other).one("input", name="once").attributes["value"]
    client.post("/workflows/release/start/", given | {"f-version": "1.0.1", "once": fresh})
    assert Run.objects.count() == 2


def test_a_long_record_is_read_from_its_end_and_further_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queries, "EVENTS_SHOWN", 12)
    run = run_for_ada()
    ada = factories.ada()
    row = factories.pending_gate(run)
    for _ in range(9):
        services.claim(row.pk, principal=ada)
        services.release(row.pk, principal=ada)
    client = client_of(ada)
    page = page_of(client.get(run.get_absolute_url()))
    shown = page.by_id("run-events").children
    run.refresh_from_db()

    assert len(shown) == 12
    assert shown[-1].get("data-seq") == str(run.last_seq)
    earlier = next(one for one in page.all("a") if one.text == "Earlier events")
    before = page_of(client.get(earlier.attributes["href"]))
    seqs = [int(one.attributes["data-seq"]) for one in before.by_id("run-events").children]
    last = int(shown[0].attributes["data-seq"]) - 1
    assert seqs == list(range(last - 11, last + 1))


def test_edges_that_follow_from_others_are_not_drawn() -> None:
    job = {"a": {}, "b": {"needs": ["a"]}, "c": {"needs": ["a", "b"]}, "d": {"needs": ["a", "c"]}}
    from runs import dag, fn_job

    nodes = {name: {"job": fn_job(name, lambda ctx: 1), **more} for name, more in job.items()}
    run = factories.make_run(dag("flow", nodes))
    graph = run_graph.graph_of(run, step_views.step_views(run, run.created_at))

    assert graph is not None
    names = {node["id"]: node["label"] for node in graph["nodes"]}
    drawn = {(names[edge["from"]], names[edge["to"]]) for edge in graph["edges"]}
    assert drawn == {("a", "b"), ("b", "c"), ("c", "d")}


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("dag:node", {"node": "x", "phase": "start", "attempt": 2}, "step started"),
        ("dag:node", {"node": "x", "phase": "end", "outcome": {"status": "pass"}}, "step passed"),
        ("callback-submitted", {"response": {"approved": False}}, "refused"),
        ("callback-submitted", {"response": [1]}, "answered"),
        ("callback-submitted", {"response": {"approved": [1]}}, "answered"),
        ("made:up", {}, "made:up"),
    ],
)
def test_an_event_is_told_in_words(kind: str, fields: dict[str, Any], words: str) -> None:
    (view,) = event_lines.event_views([Event(kind, ("root",), fields, seq=1)])

    assert (view.kind, view.words) == (kind, words)


def test_a_no_that_sends_back_is_no_error() -> None:
    outcome = {"status": "fail", "summary": "no", "revision": {"target": "a", "reason": "no"}}
    fields = {"node": "x", "phase": "end", "outcome": outcome}
    (view,) = event_lines.event_views([Event("dag:node", (), fields, seq=1)])

    assert (view.words, view.kind_group) == ("step refused", "all")


def test_a_finished_run_says_what_failed() -> None:
    from runs import dag, fn_job

    def broken(ctx: Any) -> None:
        raise RuntimeError("the disk is full")

    run = flows.ran(dag("flow", {"a": fn_job("a", broken)}))
    client = client_of(factories.ben())

    page = page_of(client.get(run.get_absolute_url()))

    assert page.by_id("run-status").get("data-status") == "failed"
    assert "a: " in page.by_id("run-status").text
    assert "the disk is full" in page.by_id("run-status").text


def test_thirty_workflows_take_as_many_statements_as_one() -> None:
    def offered(numbers: range) -> None:
        for number in numbers:
            name = flows.offer(fn_job("f", str), name=f"flow-{number:02d}", title=f"Flow {number}")
            for _ in range(4):
                factories.make_run(workflow=name)

    client = client_of(factories.person("root", perms=["runs.view_run"]))
    offered(range(1))
    statements(client, "/workflows/")
    few = statements(client, "/workflows/")
    offered(range(1, 30))

    assert statements(client, "/workflows/") == few
    page = page_of(client.get("/workflows/"))
    for number in range(30):
        last = page.by_id(f"workflow-flow-{number:02d}").text
        assert last.count("waits for a person") == catalogue.LAST_SHOWN


def test_the_questions_of_a_stream_stand_on_its_run_and_lead_to_themselves() -> None:
    row = factories.external_request(text="Ship **it**?")
    client = client_of(factories.person("root", perms=["runs.view_run", "gates.view_request"]))

    page = page_of(client.get(row.run.get_absolute_url()))

    (link,) = [one for one in page.all("a") if one.text == "Ship it?"]
    assert client.get(link.attributes["href"])["Location"] == row.get_absolute_url()
    assert client_of(factories.cyd()).get(link.attributes["href"]).status_code == 404


def test_an_answer_that_waits_for_a_resume_is_no_question_any_more() -> None:
    job = factories.release_job(on_answer="hold")
    row = factories.pending_gate(factories.make_run(job, audience=FOR_ADA))
    ada = factories.ada()
    client = client_of(factories.person("oda", perms=["runs.view_run", "runs.change_run"]))
    services.submit(
        row.pk, principal=ada, token=None, digest=row.digest, response={"approved": True}
    )

    page = page_of(client.get(row.run.get_absolute_url()))

    assert "paused" in page.by_id("run-status").text
    assert "when somebody resumes it" in page.by_id("run-status").text
    assert page.by_id("run-waiting").text == ""
    approve = page.by_id("run-steps").children[0]
    assert (approve.get("data-status"), approve.get("data-word")) == ("paused", "answered")
    assert "taken when somebody resumes" in approve.text
    assert page.by_id("run-actions").text.startswith("Resume")


def test_a_question_kept_by_a_cancelled_run_stands_open_on_its_page() -> None:
    row = factories.pending_gate(factories.make_run(audience=FOR_ADA))
    run_services.cancel_run(row.run_id, actor="user:1")

    page = page_of(client_of(factories.ada()).get(row.run.get_absolute_url()))

    approve = page.by_id("run-steps").children[0]
    assert approve.get("data-word") == "question kept"
    assert "open" in next(one for one in approve.children if one.tag == "details").attributes
    assert "may still be answered" in approve.text


@pytest.mark.parametrize("tab", run_list.TABS)
def test_a_tab_without_runs_says_which_ones_it_lacks(tab: str) -> None:
    empty = page_of(client_of(factories.ada()).get(f"/runs/?tab={tab}")).one(class_="empty")

    assert run_list.EMPTY.get(tab, "Every run of a workflow appears here") in empty.text
