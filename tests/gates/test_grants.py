"""Standing grants: their page, their REST, who ends them, and what their table refuses."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from gates.models import Grant
from runs.kernel.grants import Grant as Rule
from runs.kernel.grants import find
from runs.models import Run
from tests import factories, flows
from tests.acting import CONVERSATION, FIRST, Downstream, calling, publish_post
from tests.gates.calls import person, program
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db
OWNER = "user:777"


@pytest.fixture
def granted() -> Grant:
    """What ada allowed for the conversation c1, in a run of somebody else."""
    publish_post(Downstream())
    run = flows.ran(calling(FIRST), conversation="c1", actor=OWNER)
    flows.answer(run, CONVERSATION, router=factories.ada().actor)
    flows.work(run)
    return Grant.objects.get()


def test_the_page_says_the_rule_in_words_and_ends_it(granted: Grant) -> None:
    ada = client_of(factories.ada())
    page = page_of(ada.get("/grants/"))
    rule = (
        "Every call of publish_post in the conversation c1, in runs that a former user "
        "(777) started, runs without asking, whatever its input."
    )

    assert rule in page.one("main").text
    assert ada.post(f"/grants/{granted.pk}/revoke/").status_code == 302
    granted.refresh_from_db()
    assert granted.revoked_by == factories.ada().actor
    assert "revoked" in page_of(ada.get("/grants/")).one("main").text
    assert flows.ran(calling(FIRST), conversation="c1", actor=OWNER).waiting_on == ["approval"]
    assert flows.kinds(granted.run)[-1] == "grant.revoked"


def test_a_stranger_sees_no_grant_and_ends_none(granted: Grant) -> None:
    cyd = client_of(factories.cyd())

    assert "publish_post" not in page_of(cyd.get("/grants/")).one("main").text
    assert cyd.post(f"/grants/{granted.pk}/revoke/").status_code == 404
    told = person(factories.cyd()).post(f"/grants/{granted.pk}/revoke")
    unknown = person(factories.cyd()).post(f"/grants/{uuid.uuid4()}/revoke")
    assert (told.status_code, unknown.status_code) == (404, 404)
    granted.refresh_from_db()
    assert granted.revoked_at is None


def test_an_operator_sees_and_ends_every_grant(granted: Grant) -> None:
    operator = person(factories.operator())
    (listed,) = operator.get("/grants").json()["items"]

    assert (listed["id"], listed["active"]) == (str(granted.pk), True)
    first = operator.post(f"/grants/{granted.pk}/revoke").json()
    again = operator.post(f"/grants/{granted.pk}/revoke").json()
    assert first["active"] is False
    assert again["revokedAt"] == first["revokedAt"]


def test_a_key_that_only_reads_ends_nothing(granted: Grant) -> None:
    ada = factories.ada().user
    told = program(scopes=["read"], user=ada).post(f"/grants/{granted.pk}/revoke")

    assert (told.status_code, told.json()["error"]["code"]) == (403, "scope")


def test_a_list_goes_on_where_its_page_ended(granted: Grant) -> None:
    for number in range(3):
        make(granted.run, match_value=f"tool_{number}", granted_by=factories.ada().actor)
    ada = person(factories.ada())
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        told = ada.get("/grants", limit=2, cursor=cursor).json()
        seen += [one["matchValue"] for one in told["items"]]
        cursor = told["next"]

    assert sorted(seen) == ["publish_post", "tool_0", "tool_1", "tool_2"]


def make(run: Run, **facts: Any) -> Grant:
    given = {
        "id": uuid.uuid4(),
        "run": run,
        "scope": "principal",
        "match_type": "tool",
        "match_value": "publish_post",
        "principal": OWNER,
        "granted_by": "user:1",
        "source_request_id": "r",
        "granted_at": timezone.now(),
    }
    return Grant.objects.create(**(given | facts))


@pytest.mark.parametrize(
    "facts",
    [
        {"scope": "world"},
        {"scope": "conversation", "conversation": ""},
        {"scope": "principal", "principal": ""},
        {"match_type": "prefix"},
        {"match_value": ""},
        {"revoked_by": "user:1"},
        {"revoked_at": timezone.now()},
    ],
)
def test_the_table_refuses_a_grant_that_cannot_be(facts: dict[str, Any]) -> None:
    run = factories.make_run()
    make(run)
    with pytest.raises(IntegrityError), transaction.atomic():
        make(run, **facts)


# --- the rules -----------------------------------------------------------------------------------


def rule(**facts: Any) -> Rule:
    given: dict[str, Any] = {
        "grant_id": "g",
        "scope": "principal",
        "match_type": "tool",
        "match_value": "publish_post",
        "principal": OWNER,
    }
    return Rule(**(given | facts))


def found(
    *grants: Rule, tool: str = "publish_post", category: str = "publish", now: int = 0
) -> Any:
    one = find(grants, tool, category, principal=OWNER, conversation="c1", now=now)
    return None if one is None else one.grant_id


def test_a_grant_ends_at_its_instant() -> None:
    assert found(rule(expires_at=10), now=9) == "g"
    assert found(rule(expires_at=10), now=10) is None
    assert found(rule(revoked_at=1)) is None


def test_of_several_grants_the_newest_counts_then_the_id() -> None:
    old, new = rule(grant_id="z", granted_at=1), rule(grant_id="a", granted_at=2)

    assert found(old, new) == "a"
    assert found(rule(grant_id="a", granted_at=1), old) == "z"


def test_a_tool_named_as_a_category_inherits_nothing() -> None:
    by_category = rule(match_type="category", match_value="publishing")
    by_name = rule(match_value="publishing")

    assert found(by_category, tool="publishing", category="other") is None
    assert found(by_category, tool="post", category="publishing") == "g"
    assert found(by_name, tool="post", category="publishing") is None


def test_a_conversation_grant_needs_that_conversation() -> None:
    in_c1 = rule(scope="conversation", conversation="c1")

    assert found(in_c1) == "g"
    for conversation in ("", "c2"):
        args = ([in_c1], "publish_post", "publish")
        assert find(*args, principal=OWNER, conversation=conversation, now=0) is None
