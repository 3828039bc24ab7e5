"""Lists of large things: an answer ends where it would grow too large, and the rest follows."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from gates import services
from runs import live, record
from runs.feeds import bounded, tails
from runs.feeds.tails import Feeds
from tests import factories, flows
from tests.gates.calls import Api, person, program

pytestmark = pytest.mark.django_db
BIG = "x" * 3_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_CHARACTERS", 10_000)


def pages(api: Api, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    found, cursor = [], ""
    while True:
        page = api.get(path, **query, limit=200, **({"cursor": cursor} if cursor else {})).json()
        found.append(page["items"])
        if page["next"] is None:
            return found
        cursor = page["next"]


def test_pages_of_large_questions_are_shorter_and_miss_nothing() -> None:
    asked = [
        str(factories.external_request(gate_id=f"g{number}", input={"bulk": BIG}).pk)
        for number in range(8)
    ]

    found = pages(person(factories.ada()), "/requests")

    assert len(found) > 2
    assert all(1 <= len(page) <= 3 for page in found)
    assert [row["id"] for page in found for row in page] == asked


def test_answers_count_too() -> None:
    ada = factories.ada()
    for number in range(4):
        gate = factories.external_request(gate_id=f"g{number}", schema={})
        services.submit(
            gate.pk, principal=ada, token=None, digest=gate.digest, response={"bulk": BIG * 2}
        )

    found = pages(person(ada), "/requests", status="answered")

    assert [len(page) for page in found] == [1, 1, 1, 1]


def test_one_thing_larger_than_an_answer_may_be_is_an_answer_of_its_own() -> None:
    for number in range(2):
        factories.external_request(gate_id=f"g{number}", input={"bulk": BIG * 9})

    assert [len(page) for page in pages(person(factories.ada()), "/requests")] == [1, 1]


def test_pages_of_large_runs_are_shorter_and_miss_nothing() -> None:
    made = [str(factories.make_run(params={"bulk": BIG}, started_by="user:1").pk) for _ in range(7)]

    found = pages(program(), "/runs")

    assert all(1 <= len(page) <= 3 for page in found)
    assert [row["id"] for page in found for row in page] == made[::-1]


def test_the_events_of_a_run_come_in_parts_that_say_that_more_follows() -> None:
    run = factories.make_run()
    with record.turn(run.pk) as turn:
        for number in range(20):
            turn.append("note", (), {"n": number, "bulk": BIG})
    api, after, seen = program(), 0, []

    while True:
        part = api.get(f"/runs/{run.pk}/events", after=after).json()
        assert 1 <= len(part["items"]) <= 10
        seen += [event["seq"] for event in part["items"]]
        after = seen[-1]
        if after == part["head"]:
            break

    assert seen == list(range(1, part["head"] + 1))


@pytest.mark.django_db(transaction=True)
async def test_a_page_that_comes_late_gets_large_events_in_parts() -> None:
    def filled() -> Any:
        run = factories.make_run()
        with record.turn(run.pk) as turn:
            for number in range(12):
                turn.append("log", (), {"level": "info", "message": f"line {number}", "bulk": BIG})
        return flows.fresh(run)

    run = await sync_to_async(filled)()
    sent: list[str] = []

    class Page:
        scope: ClassVar[dict[str, Any]] = {}

        def __init__(self) -> None:
            self.outlet = self

        def show(self, frame: str) -> bool:
            sent.append(frame)
            return True

        async def drained(self) -> None:
            """A reader that is quick."""

        async def refuse(self, code: int) -> None:
            raise AssertionError(code)

    page: Any = Page()
    feed = tails.Feed(run.pk, Feeds())
    await feed.join(page, 0, live.hub.told)
    feed.leave(page)
    await sync_to_async(connections.close_all)()

    assert len(sent) > 2
    text = "".join(sent)
    assert all(text.count(f"line {number}<") == 1 for number in range(12))


def test_what_is_too_large_for_one_answer_is_not_read_for_it() -> None:
    for number in range(30):
        factories.external_request(gate_id=f"g{number}", input={"bulk": BIG})

    with CaptureQueriesContext(connection) as caught:
        listed = person(factories.ada()).get("/requests", limit=200).json()["items"]

    read = [
        query["sql"]
        for query in caught.captured_queries
        if '"gates_request"."input",' in query["sql"]
    ]
    assert len(read) == 1
    # One question more than is listed tells whether there is a next page.
    assert read[0].partition(" IN (")[2].count(",") == len(listed)
