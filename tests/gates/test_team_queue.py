"""A team's queue: its order, its filters, who may look, and the filters a person has named."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils import timezone

from gates import queries, services
from gates.lists import saved
from gates.models import Request, SavedFilter
from gates.principals import Principal
from gates.teams import groups
from tests import factories
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db
RELEASE = {"groups": ["Release"]}


def ada() -> Principal:
    return factories.person("ada", groups=["Release"])


def ask(number: int, **facts: Any) -> Request:
    given = {"audience": RELEASE, "stream": f"s{number}", "gate_id": f"gate-{number}", **facts}
    return factories.external_request(**given)


def address() -> str:
    group, _ = Group.objects.get_or_create(name="Release")
    return reverse("gates:team", args=[group.pk])


def queue(who: Principal | None = None, **query: str) -> Page:
    return page_of(client_of(who or ada()).get(address(), query))


def names(**facts: Any) -> list[str]:
    found = queries.team_queue("Release", principal=ada(), **facts)
    return [row.step for row in found.rows]


def test_what_nobody_holds_comes_first_over_all_pages_then_what_is_urgent() -> None:
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    late = (timezone.now() - timedelta(hours=1)).isoformat()
    eve = factories.person("eve", groups=["Release"])
    asked: list[dict[str, Any]] = [{"dueAt": late}, {}, {"dueAt": soon}, {"priority": 5}, {}]
    for number, facts in enumerate(asked):
        ask(number, **facts)
    for number in (0, 1):
        services.claim(Request.objects.get(gate_id=f"gate-{number}").pk, principal=eve)

    whole = names()
    assert whole == ["gate-3", "gate-2", "gate-4", "gate-0", "gate-1"]

    found: list[str] = []
    cursor = None
    for _ in range(3):
        page = queries.team_queue("Release", principal=ada(), limit=2, cursor=cursor)
        found += [row.step for row in page.rows]
        cursor = page.next
    assert (found, cursor) == (whole, None)


def test_a_row_says_who_holds_it_since_when_how_old_it_is_and_what_is_late() -> None:
    eve = factories.person("eve", groups=["Release"])
    late = (timezone.now() - timedelta(hours=3)).isoformat()
    row = ask(1, dueAt=late)
    services.claim(row.pk, principal=eve)
    Request.objects.filter(pk=row.pk).update(
        claimed_at=timezone.now() - timedelta(minutes=4),
        created_at=timezone.now() - timedelta(hours=5),
    )
    page = queue()

    shown = page.by_id(f"queue-{row.pk}")
    assert shown.get("data-urgency") == "overdue"
    for words in ("Overdue.", "eve , 4 min", "5 h", "3 h over"):
        assert words in shown.text
    assert "0 unclaimed, 1 held" in page.one(class_="team-facts").text
    assert not page.all("form", action=reverse("gates:force-release", args=[row.pk]))
    assert not page.all("input", name="pick")


def test_whoever_may_rescue_finds_the_force_release_on_the_row() -> None:
    row = ask(1)
    services.claim(row.pk, principal=ada())
    form = reverse("gates:force-release", args=[row.pk])

    assert queue(factories.operator()).all("form", action=form)
    client_of(factories.operator()).post(form, {"reason": "on holiday"})
    row.refresh_from_db()
    assert row.status == Request.Status.PENDING


def test_whoever_may_rescue_gives_a_held_question_to_somebody_else() -> None:
    row = ask(1)
    services.claim(row.pk, principal=ada())
    eve = factories.person("eve", groups=["Release"])
    form = reverse("gates:assign", args=[row.pk])

    assert queue(factories.operator()).all("form", action=form)
    client_of(factories.operator()).post(form, {"to": "eve", "reason": "on holiday"})
    row.refresh_from_db()
    assert (row.status, row.holder) == (Request.Status.CLAIMED, eve.actor)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"held": "taken"}, ["gate-1"]),
        ({"held": "free"}, ["gate-0", "gate-2"]),
        ({"q": "gate-2"}, ["gate-2"]),
        ({"gate": "gate-0"}, ["gate-0"]),
        ({"due": "overdue"}, ["gate-2"]),
        ({"kind": "question"}, []),
        ({"workflow": "nothing"}, []),
        ({"kind": "planet", "held": "by me", "due": "never"}, ["gate-0", "gate-2", "gate-1"]),
    ],
)
def test_the_queue_narrows_as_its_address_says(query: dict[str, str], expected: list[str]) -> None:
    late = (timezone.now() - timedelta(hours=1)).isoformat()
    ask(0, priority=1)
    ask(1)
    ask(2, dueAt=late)
    services.claim(Request.objects.get(gate_id="gate-1").pk, principal=ada())

    assert names(filters=query) == expected
    page = queue(None, **query)
    assert len(page.all("a", class_="row-link")) == len(expected)
    assert len(page.all("a", class_="chip")) == len(query)


def test_a_search_keeps_the_filters_and_a_chip_takes_one_away() -> None:
    ask(1)
    page = queue(q="gate", held="free")

    (search,) = page.all("form", role="search")
    kept = {one.get("name"): one.get("value") for one in search.children}
    assert kept["held"] == "free"
    removed = [one.get("href") for one in page.all("a", class_="chip")]
    assert removed == [f"{address()}?held=free", f"{address()}?q=gate"]


def test_a_filter_of_nothing_says_so_and_how_to_get_out() -> None:
    ask(1)
    page = queue(q="nowhere")

    assert "No question matches" in page.one(class_="empty").text
    assert page.all("a", href=address())


def test_only_members_and_those_who_see_everything_see_a_queue() -> None:
    ask(1)
    for path in (address(), f"{address()}times/"):
        assert client_of(ada()).get(path).status_code == 200
        assert client_of(factories.ben()).get(path).status_code == 200
        assert client_of(factories.cyd()).get(path).status_code == 404
    assert client_of(ada()).get(address(), {"cursor": "x"}).status_code == 400
    assert client_of(ada()).get("/teams/999999/").status_code == 404


def test_whoever_only_looks_can_select_nothing() -> None:
    row = ask(1)

    assert queue().one("input", name="pick").get("value") == str(row.pk)
    assert not queue(factories.ben()).all("input", name="pick")


def test_the_list_of_teams_counts_no_further_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "QUEUE_TO", 3)
    monkeypatch.setattr(groups, "QUEUE_TO", 3)
    for number in range(5):
        ask(number)
    oldest = Request.objects.get(gate_id="gate-0")

    (row,) = groups.team_rows(ada())
    assert (row.open_count, row.unclaimed_count, row.oldest_at) == (3, 3, oldest.created_at)
    assert "3+ open" in page_of(client_of(ada()).get("/teams/")).by_id(f"team-{row.id}").text
    assert "3+ unclaimed" in queue().one(class_="team-facts").text


# --- filters with a name -------------------------------------------------------------------------


def save(who: Principal, **facts: str) -> Any:
    group = Group.objects.get(name="Release")
    given = {"place": f"team:{group.pk}", "name": "late ones", "query": "due=overdue", **facts}
    return client_of(who).post(reverse("gates:filter-save"), given)


def test_a_filter_is_saved_found_again_and_deleted() -> None:
    ask(1)
    told = save(ada(), query="due=overdue&held=free&cursor=x&evil=1")

    assert told.headers["Location"] == f"{address()}?due=overdue&held=free"
    page = queue()
    (link,) = page.all("a", href=f"{address()}?due=overdue&held=free")
    assert link.text == "late ones"
    active = queue(due="overdue", held="free")
    one = SavedFilter.objects.get()
    (form,) = active.all("form", action=reverse("gates:filter-delete", args=[one.pk]))
    client_of(ada()).post(form.attributes["action"])
    assert not SavedFilter.objects.exists()


def test_a_filter_is_its_owners_and_of_its_list() -> None:
    ask(1)
    save(ada())
    one = SavedFilter.objects.get()
    eve = factories.person("eve", groups=["Release"])

    assert "late ones" not in queue(eve).one("main").text
    assert "late ones" not in page_of(client_of(ada()).get("/")).by_id("inbox-pane").text
    assert client_of(eve).post(reverse("gates:filter-delete", args=[one.pk])).status_code == 404
    assert SavedFilter.objects.filter(pk=one.pk).exists()


def test_the_inbox_has_filters_with_a_name_as_well() -> None:
    client = client_of(ada())
    given = {"place": "inbox", "name": "mine", "query": "tab=history&q=release&team=Release"}
    told = client.post(reverse("gates:filter-save"), given)

    where = "/?tab=history&q=release&team=Release"
    assert told.headers["Location"] == where
    (link,) = page_of(client.get(where)).all("a", href=where, aria_current="true")
    assert link.text == "mine"


def test_the_same_name_again_is_the_new_filter() -> None:
    ask(1)
    save(ada())
    save(ada(), query="held=free")

    assert [one.query for one in SavedFilter.objects.all()] == ["held=free"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"name": "x" * 61},
        {"query": ""},
        {"query": "evil=1"},
        {"query": "tab=history"},
        {"query": "&".join(f"a{number}=1" for number in range(100))},
    ],
)
def test_what_is_no_filter_is_not_saved(wrong: dict[str, str]) -> None:
    ask(1)
    client = client_of(ada())
    group = Group.objects.get(name="Release")
    given = {"place": f"team:{group.pk}", "name": "n", "query": "due=overdue", **wrong}

    assert client.post(reverse("gates:filter-save"), given).status_code == 302
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("place", ["", "team:", "team:x", "team:99999", "run:1", "team:1" * 30])
def test_a_list_that_is_not_theirs_keeps_no_filter(place: str) -> None:
    ask(1)
    told = client_of(ada()).post(
        reverse("gates:filter-save"), {"place": place, "name": "n", "query": "due=overdue"}
    )

    assert told.status_code == 404
    assert not SavedFilter.objects.exists()


def test_a_person_saves_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MAX_SAVED", 2)
    who = ada()
    ask(1)
    for number in range(4):
        save(who, name=f"filter {number}")

    assert SavedFilter.objects.count() == 2


def test_a_name_is_shown_as_text_and_a_value_is_cut() -> None:
    ask(1)
    evil = '<img src=x onerror="a()">\u202e'
    save(ada(), name=evil, query="q=" + "y" * 900)

    html = client_of(ada()).get(address()).content.decode()
    assert "<img src=x" not in html
    assert "\u202e" not in html
    assert len(SavedFilter.objects.get().query) == 2 + 200
