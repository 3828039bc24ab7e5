"""Where a queued run stands, on its page, in the list and over the API; and who may go first."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs import publishing, registry, services
from runs.models import Run
from runs.shapes.steps import fn_job
from tests import factories, flows
from tests.gates.calls import person, program
from tests.pages import page_of

pytestmark = pytest.mark.django_db(transaction=True)
LINE = "2nd in the queue of limited: 1 at a time"


@pytest.fixture
def runs() -> list[Run]:
    """One that goes, and two in the queue."""
    registry.load()
    publishing.publish(fn_job("limited", lambda ctx: "done"), title="Limited", concurrency=1)
    registry.enlist(publishing.offered()["limited"])
    return [services.start_run("limited", {}, actor="user:1") for _ in range(3)]


@pytest.fixture
def client() -> Client:
    made = Client()
    made.force_login(factories.user("ben", perms=["runs.view_run"]))
    return made


def test_the_page_and_the_list_say_where_a_queued_run_stands(
    runs: list[Run], client: Client
) -> None:
    page = page_of(client.get(runs[2].get_absolute_url())).one("main").text
    assert LINE in page
    assert "run queued" in page
    listed = page_of(client.get(reverse("runs:run-list"))).one("main").text
    assert LINE in listed
    assert listed.count("in the queue of limited") == 2
    assert "in the queue" not in page_of(client.get(runs[0].get_absolute_url())).one("main").text


def test_the_api_says_where_a_queued_run_stands(runs: list[Run]) -> None:
    who = program()
    queued = who.get(f"/runs/{runs[2].pk}").json()

    assert queued["status"] == queued["displayStatus"] == "queued"
    assert queued["queuePosition"] == 2
    assert queued["queuedFor"] == [
        {"kind": "workflow", "name": "limited", "limit": 1, "position": 2}
    ]
    going = who.get(f"/runs/{runs[0].pk}").json()
    assert (going["queuePosition"], going["queuedFor"], going["priority"]) == (None, [], 0)
    items = who.get("/runs").json()["items"]
    assert [item["queuePosition"] for item in items] == [2, 1, None]


def test_a_long_line_costs_a_list_no_statement_more(runs: list[Run], client: Client) -> None:
    counts: list[tuple[int, int]] = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as context:
            client.get(reverse("runs:run-list"))
        with CaptureQueriesContext(connection) as other:
            program(f"bot-{len(counts)}").get("/runs")
        counts.append((len(context), len(other)))
        for _ in range(20):
            services.start_run("limited", {}, actor="user:1")

    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("rights", "statuses"),
    [([], [201, 201, 403]), (["runs.change_run"], [201, 201, 201])],
)
def test_anybody_may_stand_back_and_who_operates_all_runs_may_go_first(
    runs: list[Run], rights: list[str], statuses: list[int]
) -> None:
    who = person(factories.person("pat", perms=rights))

    answers = [
        who.post("/runs", {"workflow": "limited", "priority": given}) for given in (-5, 0, 5)
    ]

    assert [one.status_code for one in answers] == statuses
    assert Run.objects.count() == 3 + statuses.count(201)
    assert answers[0].json()["priority"] == -5


def test_a_key_goes_first_only_with_the_scope_to_operate(runs: list[Run]) -> None:
    starts = program("starts", ["read", "start"])
    operates = program("operates", ["read", "start", "operate"])
    body = {"workflow": "limited", "priority": 7}

    assert starts.post("/runs", body).status_code == 403
    first = operates.post("/runs", body)

    assert first.status_code == 201
    assert first.json()["queuePosition"] == 1


@pytest.mark.parametrize("wrong", [101, -101, "5", 1.5, True, [1]])
def test_what_is_no_priority_is_refused_on_its_field(runs: list[Run], wrong: Any) -> None:
    told = program().post("/runs", {"workflow": "limited", "priority": wrong})

    assert told.status_code == 422
    assert "priority" in told.json()["error"]["field"]
    assert Run.objects.count() == 3


def test_a_run_keeps_its_workflows_priority_and_is_run_again_with_its_own() -> None:
    registry.load()
    publishing.publish(fn_job("first", lambda ctx: "done"), title="First", priority=4)
    registry.enlist(publishing.offered()["first"])
    plain = services.start_run("first", {}, actor="user:1")
    other = services.start_run("first", {}, actor="user:1", priority=-3)
    flows.work()

    again = program().post(f"/runs/{other.pk}/rerun")

    assert (plain.priority, again.json()["priority"]) == (4, -3)


def test_the_command_takes_a_priority(monkeypatch: pytest.MonkeyPatch, runs: list[Run]) -> None:
    monkeypatch.setattr(registry, "refresh", lambda **_: None)
    call_command("start_run", "limited", "--priority", "9")
    assert Run.objects.latest("created_at").priority == 9

    with pytest.raises(CommandError, match="-100 to 100"):
        call_command("start_run", "limited", "--priority", "101")
