"""How many statements an act takes: each is a way to the database while a run is locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gates import access, services
from gates.errors import AnswerRefused
from gates.principals import fresh
from gates.queries import inbox
from tests import factories

pytestmark = pytest.mark.django_db
YES = {"approved": True, "note": "fine"}


def reads_and_writes(act: Callable[[], Any]) -> tuple[int, int]:
    with CaptureQueriesContext(connection) as queries:
        act()
    found = [query["sql"].lstrip() for query in queries.captured_queries]
    found = [sql for sql in found if "SAVEPOINT" not in sql]
    reads = [sql for sql in found if sql.startswith("SELECT")]
    return len(reads), len(found) - len(reads)


def at_once(many: int) -> int:
    """How many writes that is: PostgreSQL takes what a turn writes as one statement."""
    return 1 if connection.vendor == "postgresql" else many


def apart() -> int:
    """PostgreSQL reads what is new in a record along with the lock."""
    return 0 if connection.vendor == "postgresql" else 1


def test_an_answer_takes_five_readings_and_its_turn() -> None:
    gate = factories.pending_gate()
    who = factories.ada()

    def answer() -> None:
        services.submit(gate.pk, principal=who, token=None, digest=gate.digest, response=YES)

    # The question and the rights; then the run, and both anew under its lock.
    assert reads_and_writes(answer) == (5 + apart(), at_once(7))


def test_a_claim_takes_four_readings_and_its_turn() -> None:
    gate = factories.pending_gate()
    who = factories.ada()

    assert reads_and_writes(lambda: services.claim(gate.pk, principal=who)) == (
        4 + apart(),
        at_once(3),
    )


def test_rights_under_the_lock_are_not_those_of_before() -> None:
    gate = factories.pending_gate()
    who = factories.ada()
    assert who.is_in(gate.audience_id)
    User.objects.filter(username="ada").update(username="ada-was-here")

    assert who.is_in(gate.audience_id)
    assert not fresh(who).is_in(gate.audience_id)
    with pytest.raises(access.Forbidden):
        services.submit(gate.pk, principal=who, token=None, digest=gate.digest, response=YES)


def test_an_answer_is_checked_by_the_records_schema_whatever_the_row_says() -> None:
    gate = factories.pending_gate()
    type(gate).objects.filter(pk=gate.pk).update(response_schema={})

    with pytest.raises(AnswerRefused):
        services.submit(
            gate.pk,
            principal=factories.ada(),
            token=None,
            digest=gate.digest,
            response={"approved": True, "note": 7},
        )


@pytest.mark.parametrize("who", ["ada", "ben", "cyd", "operator", "key"])
@pytest.mark.parametrize("asked_by", ["user:0", "mine"])
def test_one_question_is_seen_by_the_rule_of_the_lists(who: str, asked_by: str) -> None:
    caller = getattr(factories, who)()
    gate = factories.pending_gate()
    if asked_by == "mine":
        type(gate).objects.filter(pk=gate.pk).update(asked_by=caller.actor)
        gate.refresh_from_db()

    listed = access.visible_requests(caller).filter(pk=gate.pk).exists()

    assert access.may_see(caller, gate) == listed


@pytest.mark.parametrize("tab", ["unclaimed", "history"])
def test_a_page_of_many_that_are_alike_sorts_nothing(tab: str) -> None:
    gate = factories.pending_gate()
    for number in range(60):
        gate.pk, gate.request_id, gate.asked_seq = uuid4(), f"q#{number}", number + 100
        gate.save(force_insert=True)
    with CaptureQueriesContext(connection) as queries:
        page = inbox(factories.ada(), tab, limit=10)
    assert len(page.rows) == (10 if tab == "unclaimed" else 0)

    (heads,) = [q["sql"] for q in queries.captured_queries if q["sql"].startswith("SELECT * FROM")]
    explained = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A table this small would be read whole, or sorted; here only when it has to be.
            for way in ("seqscan", "bitmapscan", "sort", "incremental_sort"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"{explained} {heads}")
        plan = "\n".join(str(row) for row in cursor.fetchall())
    assert "request_" in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
