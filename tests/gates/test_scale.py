"""Lists of many questions on PostgreSQL: as many statements as for few, and none reads them all.

`OBVERSA_TEST_SCALE_REQUESTS` says how many; a million takes minutes to make.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gates import queries
from gates.principals import Principal
from tests import factories
from tests.pages import client_of

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]
TOTAL = int(os.environ.get("OBVERSA_TEST_SCALE_REQUESTS", "10000"))
PAGES = (
    "/?tab=mine",
    "/?tab=unclaimed",
    "/?tab=unclaimed&due=overdue",
    "/?tab=others",
    "/?tab=asked",
    "/?tab=history",
    "/?tab=history&q=nowhere",
    "/?tab=history&kind=question",
    "/teams/",
    "/teams/{team}/",
    "/teams/{team}/?held=taken",
    "/teams/{team}/times/",
)


@pytest.fixture(autouse=True)
def _looks_as_far_as_in_a_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "LOOKED_AT", TOTAL // 100)


def people() -> dict[str, Principal]:
    """Somebody of two teams, and somebody who looks at everything."""
    return {
        "bench": factories.person("bench", groups=["Release", "Security"]),
        "ben": factories.ben(),
    }


def read(who: Principal, path: str) -> list[str]:
    """The statements of one page."""
    team = Group.objects.get(name="Release").pk
    client = client_of(who)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path.format(team=team)).status_code == 200
    return [one["sql"] for one in captured]


def scans(plan: Any) -> Iterator[str]:
    """The tables that a plan reads from their first row to their last."""
    if plan.get("Node Type") == "Seq Scan":
        yield plan["Relation Name"]
    for inner in plan.get("Plans", ()):
        yield from scans(inner)


def read_whole(statements: list[str]) -> set[str]:
    """The big tables that any of the statements reads whole."""
    found: set[str] = set()
    for sql in statements:
        if "gates_request" not in sql and "gates_response" not in sql:
            continue
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}".replace("%", "%%"), None)
            ((told,),) = cursor.fetchall()
        plans = json.loads(told) if isinstance(told, str) else told
        found |= set(scans(plans[0]["Plan"])) & {"gates_request", "gates_response"}
    return found


def test_lists_of_many_cost_what_lists_of_few_cost_and_read_no_table_whole() -> None:
    from tests.benchmarks.many import fill

    everybody = people()
    fill(1_000, 100, vacuum=False)
    counts = {
        (name, path): len(read(who, path)) for name, who in everybody.items() for path in PAGES
    }
    fill(TOTAL, TOTAL // 100, vacuum=False, first=1_000)

    for name, who in everybody.items():
        for path in PAGES:
            statements = read(who, path)
            assert len(statements) <= counts[name, path], (name, path)
            assert read_whole(statements) == set(), (name, path)


def test_what_programs_and_sockets_ask_reads_no_table_whole() -> None:
    from tests.benchmarks.many import fill

    fill(TOTAL, TOTAL // 100, vacuum=False)
    since = timezone.now() - timedelta(minutes=1)
    for who in (*people().values(), factories.key()):
        for ask in (
            queries.requests,
            lambda who: queries.requests(who, status="answered"),
            lambda who: queries.requests(who, status="answered", q="nowhere"),
            lambda who: queries.requests(who, mine=True),
            lambda who: queries.changed_since(who, since),
            queries.open_for,
            queries.open_elsewhere,
            queries.inbox_counts,
        ):
            with CaptureQueriesContext(connection) as captured:
                ask(who)
            assert read_whole([one["sql"] for one in captured]) == set(), who.actor
