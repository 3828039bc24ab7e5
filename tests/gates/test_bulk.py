"""One answer for several like questions: what is left out, what differs, each for itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gates import services
from gates.answers import bulk
from gates.models import Request, Response
from runs.models import Event, Run
from tests import factories
from tests.gates.test_pages_findings import FOUND, asked_after
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db
TEAM = {"users": ["ada", "eve"]}


def ask(number: int, **facts: Any) -> Request:
    given = {
        "stream": f"s{number}",
        "audience": TEAM,
        "input": {"revision": "abc", "build": {"number": number, "by": "ci"}},
        "text": f"Approve build {number}?",
        **facts,
    }
    return factories.external_request(**given)


def show(rows: Iterable[Request], who: Any = None) -> Page:
    client = client_of(who or factories.ada())
    told = client.get(reverse("gates:bulk"), {"pick": [str(row.pk) for row in rows]})
    assert told.status_code == 200
    return page_of(told)


def give(rows: Iterable[Request], who: Any = None, **fields: str) -> Any:
    picked = [f"{row.pk}.{row.digest}" for row in rows]
    sent = {"pick": picked, "f-approved": "true", **fields}
    return client_of(who or factories.ada()).post(reverse("gates:bulk-answer"), sent)


def items(page: Page) -> list[str]:
    return [one.text for one in page.all(class_="bulk-item")]


def left_out(page: Page) -> str:
    (section,) = page.all(class_="bulk-left")
    return section.text


def statuses(rows: Iterable[Request]) -> list[str]:
    return [Request.objects.get(pk=row.pk).status for row in rows]


def test_like_questions_are_answered_with_one_form_and_each_is_recorded_by_itself() -> None:
    rows = [ask(number) for number in range(3)]

    page = page_of(give(rows, **{"f-note": "good"}))

    assert statuses(rows) == ["answered"] * 3
    for row in rows:
        assert Response.objects.get(request=row).response == {"approved": True, "note": "good"}
        kinds = ["callback-requested", "callback-routed", "callback-claimed", "callback-submitted"]
        assert factories.event_kinds(row.run) == kinds
        submitted = Event.objects.get(run=row.run_id, kind="callback-submitted")
        assert submitted.actor == factories.ada().actor
        assert submitted.surface == "browser"
        assert f"event {submitted.seq}" in page.one("main").text
    assert page.one("h1").text == "3 of 3 answered"
    assert "Approve , 3 times" in page.one("p", class_="bulk-count").text


def test_the_preview_names_what_is_unlike_the_first() -> None:
    first, second = ask(1), ask(2, input={"revision": "abc", "build": {"number": 2}, "new": [1]})
    same = ask(3, input={"revision": "abc", "build": {"number": 1, "by": "ci"}})

    shown = items(show([first, second, same]))

    assert "/build/number 1" in shown[0]
    assert "/build/by ci" in shown[0]
    assert "/new not there" in shown[0]
    for words in ("Approve build 2?", "/build/number 2", "/build/by not there", "/new [1]"):
        assert words in shown[1]
    assert "/revision" not in shown[1]
    assert "about the same as the first" in shown[2]


def test_many_differences_are_counted_and_long_ones_cut() -> None:
    first = ask(1, input={str(number): "a" for number in range(20)})
    second = ask(2, input={str(number): "b" * 5_000 for number in range(20)})

    shown = items(show([first, second]))

    assert "and 12 more" in shown[1]
    assert len(shown[1]) < 2_500


def test_what_cannot_be_answered_together_is_named_and_left_out() -> None:
    eve = factories.person("eve")
    held, done, gone, other, form, quorum, theirs, mine = (
        ask(1),
        ask(2),
        ask(3),
        ask(4, gate_id="another"),
        ask(5, schema={"type": "object", "properties": {"approved": {"type": "boolean"}}}),
        ask(6, needed=2),
        ask(7, audience={"users": ["eve"]}),
        ask(8),
    )
    lead = ask(0)
    services.claim(held.pk, principal=eve)
    services.claim(mine.pk, principal=factories.ada())
    services.submit(
        done.pk, principal=eve, token=None, digest=done.digest, response={"approved": False}
    )
    services.withdraw(gone.pk, principal=factories.operator(), reason="no need")
    Run.objects.filter(pk=theirs.run_id).update(started_by=factories.ada().actor)
    everything = [lead, held, done, gone, other, form, quorum, theirs, mine]

    page = show(everything)

    assert len(items(page)) == 2
    said = left_out(page)
    for words in (
        "Approve build 1? eve holds it",
        "Approve build 2? it is answered",
        "Approve build 3? it was withdrawn",
        "Approve build 4? it is another question than the first: another",
        "Approve build 5? its form is unlike the first's",
        "Approve build 6? it needs the answers of 2 people",
        "Approve build 7? this question is for somebody else to answer",
    ):
        assert words in said
    give(everything)
    assert statuses(everything) == [
        *("answered", "claimed", "answered", "cancelled"),
        *(["pending"] * 4),
        "answered",
    ]
    assert Response.objects.get(request=done).actor == eve.actor


def test_open_findings_want_a_tick_of_their_own() -> None:
    row = asked_after([FOUND])

    page = show([row])
    assert "open findings" in left_out(page)
    assert not page.all("form", class_="answer bulk-form")
    assert give([row]).status_code == 409
    assert statuses([row]) == ["claimed"]


def test_questions_that_are_not_there_for_the_reader_are_only_counted() -> None:
    row, hidden = ask(1), ask(2, audience={"users": ["eve"]})
    client = client_of(factories.ada())
    picked = [str(row.pk), str(hidden.pk), str(uuid4()), "no-uuid", str(row.pk)]
    page = page_of(client.get(reverse("gates:bulk"), {"pick": picked}))

    assert len(items(page)) == 1
    assert "2 that are not here for you" in left_out(page)
    assert "build 2" not in page.one("main").text
    assert give([row, hidden]).status_code == 200
    assert statuses([row, hidden]) == ["answered", "pending"]


def test_whoever_has_no_business_there_answers_nothing() -> None:
    rows = [ask(1), ask(2)]

    for who in (factories.cyd(), factories.ben()):
        assert give(rows, who).status_code == 409
    assert statuses(rows) == ["pending", "pending"]
    assert (
        client_of(factories.ben(), enforce_csrf_checks=True)
        .post(reverse("gates:bulk-answer"), {})
        .status_code
        == 403
    )


def test_a_question_that_changed_since_it_was_shown_is_not_answered() -> None:
    rows = [ask(1), ask(2)]
    picked = [f"{rows[0].pk}.{rows[0].digest}", f"{rows[1].pk}.{'0' * 64}"]
    sent = {"pick": picked, "f-approved": "true"}
    page = page_of(client_of(factories.ada()).post(reverse("gates:bulk-answer"), sent))

    assert statuses(rows) == ["answered", "pending"]
    assert page.one("h1").text == "1 of 2 answered"
    assert "Not answered: This answer is for another question" in items(page)[1]


def test_one_that_is_lost_to_somebody_else_leaves_the_others_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [ask(number) for number in range(3)]
    eve = factories.person("eve")
    submit = services.submit

    def late(pk: Any, **facts: Any) -> services.Receipt:
        if pk == rows[1].pk:
            services.claim(pk, principal=eve)
        return submit(pk, **facts)

    monkeypatch.setattr(services, "submit", late)
    page = page_of(give(rows))

    assert statuses(rows) == ["answered", "claimed", "answered"]
    assert page.one("h1").text == "2 of 3 answered"
    assert "Not answered:" in items(page)[1]


def test_sent_twice_nothing_is_answered_twice() -> None:
    rows = [ask(1), ask(2)]
    give(rows)
    before = Event.objects.count()

    assert give(rows, **{"f-approved": "false"}).status_code == 409
    assert Event.objects.count() == before


def test_a_wrong_answer_records_nothing_and_keeps_what_was_typed() -> None:
    rows = [ask(1), ask(2)]
    told = give(rows, **{"f-approved": "", "f-note": "typed"})

    assert told.status_code == 422
    assert statuses(rows) == ["pending", "pending"]
    assert "typed" in told.content.decode()
    assert len(items(page_of(told))) == 2


def test_no_with_a_target_says_why_for_all_of_them() -> None:
    rows = [factories.pending_gate(input={"revision": str(number)}) for number in range(2)]
    told = give(rows, **{"f-approved": "false"})

    assert told.status_code == 200
    assert statuses(rows) == ["answered", "answered"]
    assert [Run.objects.get(pk=row.run_id).status for row in rows] == ["failed", "failed"]


def test_at_most_a_hundred_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_PICKED", 2)
    rows = [ask(number) for number in range(4)]

    page = show(rows)
    assert len(items(page)) == 2
    assert "At most 2" in page.one("p", class_="refusal").text
    give(rows)
    assert statuses(rows).count("answered") == 2


def test_the_preview_takes_as_many_statements_for_twenty_as_for_two() -> None:
    rows = [ask(number) for number in range(20)]

    def statements(some: list[Request]) -> int:
        with CaptureQueriesContext(connection) as captured:
            show(some)
        return len(captured)

    statements(rows)
    assert statements(rows) <= statements(rows[:2])


def test_hostile_text_is_text() -> None:
    evil = "<script>alert(1)</script>\u202e"
    rows = [
        ask(number, gate_id="g", text=f"{evil} {number}", input={evil: f"{evil}{number}"})
        for number in range(2)
    ]
    client = client_of(factories.ada())
    shown = client.get(reverse("gates:bulk"), {"pick": [str(row.pk) for row in rows]})

    for html in (shown.content.decode(), give(rows).content.decode()):
        assert "<script>alert" not in html
        assert "\u202e" not in html


def test_the_inbox_lets_several_be_selected_without_scripts() -> None:
    rows = [ask(1), ask(2)]
    client = client_of(factories.ada())

    plain = page_of(client.get("/?tab=unclaimed"))
    assert not plain.all("input", name="pick")
    (link,) = plain.all("a", class_="select-link")
    chosen = page_of(client.get(link.attributes["href"]))
    boxes = chosen.all("input", name="pick")
    assert {one.get("value") for one in boxes} == {str(row.pk) for row in rows}
    assert {one.get("form") for one in boxes} == {"bulk"}
    (form,) = chosen.all("form", id="bulk")
    assert (form.get("method"), form.get("action")) == ("get", reverse("gates:bulk"))


def test_the_way_back_leads_to_the_list_it_came_from() -> None:
    member = factories.person("ada", groups=["Release"])
    row = ask(1, audience={"groups": ["Release"]})
    assert member.user is not None
    group = member.user.groups.get()
    client = client_of(member)

    def back(place: str) -> str:
        told = client.get(reverse("gates:bulk"), {"pick": str(row.pk), "place": place})
        return str(page_of(told).one("a", class_="back").get("href"))

    assert back(f"team:{group.pk}") == reverse("gates:team", args=[group.pk])
    assert back("inbox") == back("//evil.example") == back("team:999") == reverse("gates:inbox")
