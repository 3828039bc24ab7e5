from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gates import queries, services
from gates.access import Forbidden
from gates.errors import CursorRefused
from gates.models import Request
from gates.pages import details
from gates.principals import Principal
from gates.teams import groups
from tests import factories

pytestmark = pytest.mark.django_db


def ask(number: int, **facts: Any) -> Request:
    return factories.external_request(stream="s", gate_id=f"gate-{number}", **facts)


def shown(who: Principal, tab: str, **facts: Any) -> list[str]:
    return [row.step for row in queries.inbox(who, tab, **facts).rows]


def statements(act: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        act()
    return len(captured)


def test_each_question_stands_in_the_tab_where_it_is_looked_for() -> None:
    ada, eve, asker = factories.ada(), factories.person("eve"), factories.key()
    both = {"users": ["ada", "eve"]}
    free, held, taken = (ask(number, audience=both) for number in range(3))
    services.claim(held.pk, principal=ada)
    services.claim(taken.pk, principal=eve)
    done = ask(3)
    services.submit(
        done.pk, principal=ada, token=None, digest=done.digest, response={"approved": False}
    )

    tabs = {tab: shown(ada, tab) for tab in queries.TABS}

    assert tabs == {
        "mine": [held.gate_id],
        "unclaimed": [free.gate_id],
        "others": [taken.gate_id],
        "asked": [],
        "history": [done.gate_id],
    }
    assert len(shown(asker, "asked")) == 3
    assert queries.inbox_counts(ada) == {"mine": 1, "unclaimed": 1, "others": 1, "asked": 0}
    assert all(shown(factories.cyd(), tab) == [] for tab in queries.TABS)


def test_ben_looks_at_the_history_of_all_and_has_no_inbox() -> None:
    gate = ask(1)
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )

    assert shown(factories.ben(), "history") == ["gate-1"]
    assert shown(factories.ben(), "unclaimed") == []


def test_the_most_urgent_comes_first_then_the_oldest() -> None:
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    late = (timezone.now() - timedelta(hours=1)).isoformat()
    ask(1)
    ask(2, dueAt=soon)
    ask(3, dueAt=late)
    ask(4, priority=1)
    ask(5)

    rows = queries.inbox(factories.ada(), "unclaimed").rows

    assert [row.step for row in rows] == ["gate-4", "gate-3", "gate-2", "gate-1", "gate-5"]
    assert [row.urgency for row in rows] == ["", "overdue", "soon", "", ""]


def test_a_list_counts_its_questions_by_kind() -> None:
    ask(1)
    ask(2, kind="question")
    ask(3, kind="question", audience={"groups": ["Release"]})
    ada = factories.person("ada", groups=["Release"])

    assert queries.inbox(ada, "unclaimed").kinds == {"gate": 1, "question": 2}
    assert queries.inbox(ada, "unclaimed", filters={"kind": "gate"}).kinds["question"] == 2
    assert queries.inbox(ada, "mine").kinds == {}
    assert queries.inbox(ada, "history").kinds == {}
    assert queries.team_queue("Release", principal=ada).kinds == {"question": 1}


def test_what_expires_soonest_comes_before_what_never_does() -> None:
    ask(1)
    ask(2, expiresInSeconds=86_400)
    ask(3, expiresInSeconds=3_600)
    ask(4, expiresInSeconds=60, dueInSeconds=30)
    ask(5, expiresInSeconds=60, onExpiry="escalate", escalateTo=factories.FOR_ADA)

    rows = queries.inbox(factories.ada(), "unclaimed").rows

    assert [row.step for row in rows] == ["gate-4", "gate-5", "gate-3", "gate-2", "gate-1"]
    assert [row.urgency for row in rows] == ["soon", "soon", "soon", "", ""]


@pytest.mark.parametrize("tab", ["unclaimed", "history", "asked"])
def test_pages_show_every_question_once(tab: str) -> None:
    audiences = [factories.FOR_ADA, {"users": ["ada", "eve"]}, {}]
    who = factories.ada() if tab != "asked" else factories.key()
    for number in range(11):
        gate = ask(number, audience=audiences[number % 3], priority=number % 2)
        if tab == "history":
            services.submit(
                gate.pk,
                principal=factories.ada(),
                token=None,
                digest=gate.digest,
                response={"approved": True},
            )
    whole = shown(who, tab)

    found: list[str] = []
    cursor = None
    for _ in range(6):
        page = queries.inbox(who, tab, limit=2, cursor=cursor)
        found += [row.step for row in page.rows]
        cursor = page.next

    assert cursor is None
    assert found == whole
    assert len(set(found)) == 11


@pytest.mark.parametrize("cursor", ["x", "", "W10", "é", "bnVsbA", "WzEsMiwzLDRd", "%00", "=" * 9])
def test_a_cursor_nobody_handed_out_is_refused(cursor: str) -> None:
    if cursor == "":
        assert queries.inbox(factories.ada(), cursor=cursor).rows == []
        return
    with pytest.raises(CursorRefused):
        queries.inbox(factories.ada(), cursor=cursor)


@pytest.mark.parametrize(
    ("q", "count"),
    [
        ("release", 2),
        ("RELEASE abc123", 2),
        ("gate-1", 1),
        ("nothing", 0),
        ("100%", 0),
        ("_", 0),
        ("zz\0z", 0),
        ("'; DROP", 0),
    ],
)
def test_search_finds_words_of_the_question(q: str, count: int) -> None:
    ask(1)
    ask(2)

    assert len(shown(factories.ada(), "unclaimed", q=q)) == count


def test_search_finds_a_fingerprint_and_a_run() -> None:
    gate = ask(1, text="?")

    for q in (gate.fingerprint, str(gate.run_id), gate.run.short):
        assert shown(factories.ada(), "unclaimed", q=q) == ["gate-1"]


def test_filters_narrow_the_list() -> None:
    factories.pending_gate()
    late = (timezone.now() - timedelta(hours=1)).isoformat()
    ask(1, kind="question", dueAt=late)
    ask(2, audience={"groups": ["Release"], "users": ["ada"]})

    def narrowed(**filters: str) -> list[str]:
        return shown(factories.ada(), "unclaimed", filters=filters)

    assert narrowed(workflow="release") == ["approve"]
    assert narrowed(kind="question") == ["gate-1"]
    assert narrowed(due="overdue") == narrowed(due="soon") == ["gate-1"]
    assert narrowed(team="Release") == ["gate-2"]
    assert len(narrowed(asked_by="key:bot")) == 2
    assert len(narrowed(unknown="x", kind="planet", workflow="")) == 3


def test_the_inbox_costs_the_same_for_one_question_and_for_thirty() -> None:
    ada = factories.ada()
    ask(0)

    def read() -> None:
        for tab in queries.TABS:
            queries.inbox(factories.person("ada"), tab)
        queries.team_queue("Release", principal=ada)
        groups.team_rows(ada)

    few = statements(read)
    for number in range(1, 30):
        ask(number, by=factories.key())
    services.claim(Request.objects.get(gate_id="gate-3").pk, principal=ada)

    assert statements(read) <= few + 1
    assert queries.inbox_counts(ada)["unclaimed"] == 29


def test_counts_stop_at_99() -> None:
    row = ask(0)
    copies = []
    for number in range(150):
        copy = Request.objects.get(pk=row.pk)
        copy.pk = None
        copy.request_id = f"copy-{number}"
        copies.append(copy)
    for copy in copies:
        copy._state.adding = True
        copy.id = Request._meta.pk.get_default()
    Request.objects.bulk_create(copies)

    assert queries.inbox_counts(factories.ada())["unclaimed"] == 99


def test_a_teams_queue_holds_what_its_group_may_answer() -> None:
    group = {"groups": ["Release"]}
    eve = factories.person("eve", groups=["Release"])
    first, second = ask(1, audience=group), ask(2, audience=group | {"users": ["ada"]})
    ask(3)
    services.claim(first.pk, principal=eve)

    rows = queries.team_queue("Release", principal=eve).rows

    assert {row.step for row in rows} == {"gate-1", "gate-2"}
    assert queries.team_queue("Release", principal=factories.cyd()).rows == []
    [team] = groups.team_rows(eve)
    assert (team.name, team.member_count, team.open_count, team.unclaimed_count) == (
        "Release",
        1,
        2,
        1,
    )
    assert team.oldest_at == min(first.created_at, second.created_at)
    assert groups.team_rows(factories.cyd()) == []
    assert [row.name for row in groups.team_rows(factories.ben())] == ["Release"]


def test_reading_needs_the_scope_for_it() -> None:
    with pytest.raises(Forbidden):
        queries.inbox(factories.key("writer", ["answer"]))
    with pytest.raises(Forbidden):
        queries.requests(factories.key("writer", ["answer"]))


def test_programs_list_by_status_kind_run_and_audience() -> None:
    bot = factories.key()
    first, second = ask(1), ask(2, kind="question", audience={"groups": ["Release"]})
    services.withdraw(first.pk, principal=bot, reason="r")

    def listed(**wanted: Any) -> list[Any]:
        return [row.pk for row in queries.requests(bot, **wanted)[0]]

    assert listed() == [second.pk]
    assert listed(status="cancelled") == [first.pk]
    assert listed(kind="gate") == []
    assert listed(audience="group:Release") == [second.pk]
    assert listed(mine=True) == []
    assert listed(run_id=second.run_id) == [second.pk]


def test_the_detail_tells_the_story_and_what_changed() -> None:
    ada = factories.ada()
    factories.external_request(stream="d", input={"version": "1", "notes": ["a"], "gone": True})
    new = factories.external_request(stream="d", input={"version": "2", "notes": ["a", "b"]})
    token = services.claim(new.pk, principal=ada).token

    seen = details.detail(ada, new.pk)

    assert (seen.mode, seen.claim_state, seen.claim_token) == ("answer", "you", token)
    assert sorted((change.path, change.before, change.after) for change in seen.changes) == [
        ("/gone", "true", None),
        ("/notes/1", None, "b"),
        ("/version", "1", "2"),
    ]
    assert [event.kind_label for event in seen.timeline] == ["asked", "claimed"]
    assert [event.actor_label for event in seen.timeline] == ["key bot", "ada"]
    assert seen.who_may_answer == ["ada"]
    assert details.detail(factories.ben(), new.pk).claim_token == ""
    assert details.detail(factories.ben(), new.pk).mode == "held"


def test_the_detail_of_a_step_says_where_it_stands_and_what_follows() -> None:
    gate = factories.pending_gate()

    seen = details.detail(factories.ada(), gate.pk)

    assert (seen.mode, seen.outcomes.on_yes) == ("claim", ["ship"])
    assert [(step.name, step.status, step.current) for step in seen.steps] == [
        ("approve", "waiting", True),
        ("ship", "idle", False),
    ]
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": False, "note": "not yet"},
    )
    closed = details.detail(factories.ada(), gate.pk)
    assert closed.mode == "closed"
    assert closed.given is not None
    assert (closed.given.verdict, closed.given.note, closed.given.next) == (
        "no",
        "not yet",
        "resumed",
    )
    assert closed.timeline[-1].note == "not yet"


def test_the_detail_costs_the_same_whatever_happened() -> None:
    gate = factories.pending_gate()
    ada = factories.ada()
    few = statements(lambda: details.detail(ada, gate.pk))
    for _ in range(5):
        services.claim(gate.pk, principal=ada)
        services.release(gate.pk, principal=ada)

    assert statements(lambda: details.detail(ada, gate.pk)) <= few + 1


def test_the_story_of_a_withdrawal_is_one_line() -> None:
    gate = factories.pending_gate()
    services.withdraw(gate.pk, principal=factories.operator(), reason="wrong build")

    seen = details.detail(factories.ben(), gate.pk)

    assert [(event.kind_label, event.note) for event in seen.timeline] == [
        ("asked", ""),
        ("withdrawn", "wrong build"),
    ]
    assert seen.superseded_by is None or seen.superseded_by.pk != gate.pk
