"""The page about the installation: who may see it, what it shows, and its one act."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail as mailbox
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gates.models import Channel, Delivery, Request
from obversa_site.operations import stuck
from runs.attempts import heartbeat
from runs.models import Attempt, Event, Heartbeat, Run
from runs.people.principals import Principal
from runs.sweep import REPAIRS_KEPT, Swept, _note
from runs.turns.repairs import Repair
from tests import factories, flows
from tests.gates.notify import ways
from tests.pages import Page, client_of

pytestmark = pytest.mark.django_db
HERE = "/operations/"


def shown(who: Principal | None = None) -> Page:
    answer = client_of(who or factories.operator()).get(HERE)
    assert answer.status_code == 200, answer.content
    return Page(answer.content.decode())


def parts(page: Page) -> dict[str, str]:
    """The text of each part by the name of its title."""
    return {
        (section.get("aria-labelledby") or "").removesuffix("-title"): section.text
        for section in page.all("section")
    }


def failed_delivery() -> Delivery:
    """One that failed, because its receiver has no address yet."""
    person = factories.user("ada")
    channel = Channel.objects.create(user=person, kind="mail", name="Mail", wants=ways.ALL)
    factories.pending_gate()
    ways.send_all()
    found = Delivery.objects.get(channel=channel)
    assert found.state == "failed"
    return found


def test_only_those_who_see_everything_are_let_in_and_led_there() -> None:
    for who, status in ((factories.ada(), 403), (factories.cyd(), 403), (factories.ben(), 200)):
        client = client_of(who)
        assert client.get(HERE).status_code == status
        assert (HERE in client.get("/runs/").content.decode()) is (status == 200)
    half = factories.person("half", perms=["runs.view_run"])
    assert client_of(half).get(HERE).status_code == 403


def test_nobody_is_let_in_without_signing_in(client: Any) -> None:
    assert client.get(HERE).headers["Location"].startswith("/sign-in/")
    assert client_of(factories.operator()).post(HERE).status_code == 405


def test_an_empty_installation_says_what_will_be_there() -> None:
    told = parts(shown())

    assert set(told) == {"stuck", "processes", "queues", "failed", "sweeps"}
    assert "Nothing is stuck" in told["stuck"]
    assert "manage.py up" in told["processes"]
    assert "There is no broker" in told["queues"]
    assert "No message failed" in told["failed"]
    assert "No sweep has found anything" in told["sweeps"]


def test_workers_show_what_they_take_and_what_they_do() -> None:
    run = flows.start(factories.release_job(), name="shipping")
    flows.answer(run, {"approved": True})
    flows.claimed(run)
    worker = Attempt.objects.get(run=run).worker
    heartbeat.beat(worker, "worker", queues=["control", "steps"], slots=4)
    heartbeat.beat("web@there/1", "web", sockets={"inbox": 2, "run": 3})
    Heartbeat.objects.create(
        name="worker@gone/9", role="worker", at=timezone.now() - timedelta(minutes=5)
    )

    page = shown()
    rows = [one.text for one in page.all("li", **{"class": "op-row op-process"})]

    assert len(rows) == 3
    mine = next(text for text in rows if worker in text)
    assert "at work" in mine
    assert "takes control, steps" in mine
    assert "4 at once" in mine
    assert "ship" in mine
    assert run.short in mine
    assert "5 sockets" in next(text for text in rows if "web@there/1" in text)
    assert "silent" in next(text for text in rows if "worker@gone/9" in text)
    assert "1 worker" in page.all(id="operations")[0].text


def test_a_child_of_a_pool_counts_for_the_process_that_beats() -> None:
    run = flows.start(factories.release_job(), name="shipping")
    flows.answer(run, {"approved": True})
    flows.claimed(run)
    Attempt.objects.filter(run=run).update(worker="worker@host/7/12")
    heartbeat.beat("worker@host/7", "worker")

    text = parts(shown())["processes"]

    assert "at work" in text
    assert run.short in text


def test_what_is_stuck_is_named_with_the_way_to_it() -> None:
    now = timezone.now()
    held = factories.make_run(factories.release_job(), workflow="held")
    Run.objects.filter(pk=held.pk).update(held_reason="The shape of <b>held</b> changed.")
    late = factories.pending_gate()
    Request.objects.filter(pk=late.pk).update(due_at=now - timedelta(hours=1))
    factories.ada()
    nobody = factories.pending_gate(audience={"groups": ["Vacant"]}, question="Who is there?")
    lapsed = flows.start(factories.release_job(), name="shipping")
    flows.answer(lapsed, {"approved": True})
    flows.claimed(lapsed)
    Attempt.objects.filter(run=lapsed).update(lease_until=now - timedelta(seconds=5))

    page = shown()
    told = parts(page)["stuck"]
    links = {link.get("href") for link in page.all("a")}

    for title in (
        "Held runs",
        "Steps whose worker fell silent",
        "Questions nobody can answer",
        "past their time",
    ):
        assert title in told
    assert "<b>held</b>" in told  # escaped: it came back as text
    for row in (held, late, nobody, lapsed):
        assert row.get_absolute_url() in links


@pytest.mark.parametrize(
    ("audience", "is_empty"),
    [
        (None, False),
        ({"users": ["ada"]}, False),
        ({"users": ["nobody-of-that-name"]}, True),
        ({"users": ["left"]}, True),
        ({"groups": ["Vacant"]}, True),
        ({"groups": ["Release"]}, False),
        ({"groups": ["Vacant"], "users": ["ada"]}, False),
        ({"permissions": ["gates.view_request"]}, False),
        ({"permissions": ["gates.no_such"]}, True),
        ({"keys": ["bot"]}, False),
        ({"keys": ["none"]}, True),
        ({"routers": ["none"]}, True),
    ],
)
def test_a_question_is_nobodys_when_its_audience_has_nobody(audience: Any, is_empty: bool) -> None:
    factories.user("ada", groups=["Release"])
    factories.user("left", is_active=False)
    factories.user("seer", perms=["gates.view_request"])
    factories.key("bot")
    factories.external_request(audience=audience or {})

    assert ("Questions nobody can answer" in parts(shown())["stuck"]) is is_empty


def test_no_count_goes_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck, "SHOWN", 1)
    first = failed_delivery()
    for number in range(3):
        held = factories.make_run(factories.release_job(), workflow=f"held-{number}")
        Run.objects.filter(pk=held.pk).update(held_reason="It changed.")
    for number in range(2):
        Delivery.objects.create(
            channel=first.channel, run=first.run, request=first.request, kind=first.kind,
            key=f"another-{number}", state="failed", next_at=first.next_at,
            created_at=first.created_at, done_at=first.done_at,
        )  # fmt: skip
    for limit, count, text in ((3, 3, "3+"), (2, 2, "2+"), (9, 3, "3")):
        monkeypatch.setattr(stuck, "COUNTED_TO", limit)
        told = parts(shown())
        scrape = client_of(factories.operator()).get("/metrics")

        assert f"Held runs {text} " in " ".join(told["stuck"].split())
        assert f"Messages that failed {text} " in " ".join(told["failed"].split())
        assert f"obversa_runs_held {count}.0" in scrape.content.decode()


def test_a_failed_message_is_sent_again_once_and_the_record_says_on_whose_word() -> None:
    delivery = failed_delivery()
    User.objects.filter(username="ada").update(email="ada@example.com")
    again = f"{HERE}notifications/{delivery.uid}/again/"
    oda = factories.operator()
    assert again in {form.get("action") for form in shown(oda).all("form")}

    client = client_of(oda)
    answers = [client.post(again) for _ in range(2)]
    ways.send_all()
    client.post(again)
    ways.send_all()

    assert [answer.headers["Location"] for answer in answers] == [HERE, HERE]
    assert len(mailbox.outbox) == 1
    logged = Event.objects.filter(run=delivery.run, kind="log")
    assert [(one.actor, one.surface) for one in logged] == [(oda.actor, "browser")]
    assert str(delivery.uid) in str(logged[0].payload)


def test_who_may_only_look_sends_nothing_again() -> None:
    delivery = failed_delivery()
    again = f"{HERE}notifications/{delivery.uid}/again/"
    looks = factories.ben()

    assert again not in {form.get("action") for form in shown(looks).all("form")}
    for who, status in ((looks, 403), (factories.ada(), 403), (factories.cyd(), 403)):
        assert client_of(who).post(again).status_code == status
    operates_blindly = factories.person("blind", perms=["gates.change_request"])
    assert client_of(operates_blindly).post(again).status_code == 403
    assert client_of(factories.operator()).get(again).status_code == 405
    none = f"{HERE}notifications/00000000-0000-4000-8000-000000000000/again/"
    assert client_of(factories.operator()).post(none).status_code == 404
    delivery.refresh_from_db()
    assert delivery.state == "failed"


def test_a_cookie_alone_sends_nothing_again() -> None:
    from django.test import Client

    delivery = failed_delivery()
    client = Client(enforce_csrf_checks=True)
    user = factories.operator().user
    assert user is not None
    client.force_login(user)

    assert client.post(f"{HERE}notifications/{delivery.uid}/again/").status_code == 403
    delivery.refresh_from_db()
    assert delivery.state == "failed"


def test_sweeps_that_repaired_something_are_kept_so_many() -> None:
    for number in range(REPAIRS_KEPT + 5):
        _note(Swept(lost=number))

    assert Repair.objects.count() == REPAIRS_KEPT
    assert str(REPAIRS_KEPT + 4) in parts(shown())["sweeps"]


def test_much_takes_as_many_statements_as_little() -> None:
    client = client_of(factories.operator())

    def add(number: int) -> None:
        for each in range(number):
            late = factories.pending_gate(question=f"Ship {each}?")
            Request.objects.filter(pk=late.pk).update(due_at=timezone.now())
            run = factories.make_run(factories.release_job(), workflow=f"held-{each}")
            Run.objects.filter(pk=run.pk).update(held_reason="changed")

    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(HERE).status_code == 200
        return len(queries)

    add(1)
    client.get(HERE)
    few = statements()
    add(30)
    # What goes beyond the rows that are shown is counted, kind by kind.
    assert statements() <= few + 4
