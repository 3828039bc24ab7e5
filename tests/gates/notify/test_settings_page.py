"""The pages about channels: whose they are, what they show, and what they never show."""

from __future__ import annotations

from datetime import time
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail as mailbox
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gates.models import Channel, Delivery, Preference
from gates.notify import channels
from gates.notify.spread import spread
from runs.people.principals import Principal
from tests import factories
from tests.gates.notify import ways
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db
SECRET = "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
SLACK = {"name": "Chat", "address": f"slack://{SECRET}", "wants": ["asked"], "digest": "hourly"}
HOOK = {"name": "Pager", "address": "https://example.com/hook/s3cr3t", "wants": ["asked"]}


def chief(name: str = "oda") -> Principal:
    """Somebody of the release team who may change teams."""
    return factories.person(name, groups=["Release"], perms=["gates.change_team"])


def team() -> Group:
    return Group.objects.get_or_create(name="Release")[0]


def test_a_person_adds_a_service_and_its_address_is_shown_nowhere() -> None:
    client = client_of(factories.ada())
    assert client.get("/channels/add/service/").status_code == 200

    response = client.post("/channels/add/service/", SLACK)

    assert (response.status_code, response["Location"]) == (302, "/settings/")
    made = Channel.objects.get()
    assert (made.user, made.address) == (User.objects.get(username="ada"), SLACK["address"])
    assert (made.wants, made.digest) == (["asked"], "hourly")
    for address in ("/settings/", f"/channels/{made.pk}/", "/notifications/"):
        html = client.get(address).content.decode()
        assert "TIiajkdnlazkcOXrIdevi7FQ" not in html
    assert "slack://…" in client.get("/settings/").content.decode()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("json://127.0.0.1/", "begins with one of"),
        ("https://example.com/", "begins with one of"),
        ("slack://nonsense", "no address that slack understands"),
        ("", "required"),
        ("slack://" + "a" * 2_100, "at most 2000 characters"),
    ],
)
def test_an_address_that_may_not_be_is_refused_at_its_field(address: str, words: str) -> None:
    client = client_of(factories.ada())

    response = client.post("/channels/add/service/", {**SLACK, "address": address})

    assert response.status_code == 422
    assert words in page_of(response).by_id("id_address_error").text
    assert not Channel.objects.exists()


def test_a_persons_mail_goes_to_their_own_account_and_to_no_stranger() -> None:
    ada = factories.user("ada", email="ada@example.com")
    client = client_of(factories.ada())

    client.post(
        "/channels/add/mail/",
        {"name": "Mail", "wants": ["asked"], "digest": "off", "address": "victim@example.com"},
    )

    made = Channel.objects.get()
    assert (made.user, made.address, made.shown_address) == (ada, "", "ada@example.com")
    again = client.post(
        "/channels/add/mail/", {"name": "Mail", "wants": ["asked"], "digest": "off"}
    )
    assert again.status_code == 422
    assert Channel.objects.count() == 1


def test_only_who_may_change_teams_says_where_a_webhook_goes() -> None:
    for who in (factories.ada(), factories.operator()):
        client = client_of(who)
        assert client.get("/channels/add/webhook/").status_code == 403
        assert client.post("/channels/add/webhook/", HOOK).status_code == 403
    assert not Channel.objects.exists()


def test_a_team_is_told_where_those_who_may_change_it_say() -> None:
    client = client_of(chief())
    address = f"/teams/{team().pk}/channels/add/webhook/"
    assert client.get(address).status_code == 200

    shown = client.post(address, HOOK)

    made = Channel.objects.get()
    assert (made.team, made.user) == (team(), None)
    assert made.secret in shown.content.decode()
    again = client.get(f"/channels/{made.pk}/").content.decode()
    assert made.secret not in again
    assert "s3cr3t" not in again
    assert "https://example.com/…" in again


@pytest.mark.parametrize("who", ["member", "cyd", "stranger"])
def test_a_teams_channels_are_nobody_elses(who: str) -> None:
    made = ways.webhook_of("Release", "https://example.com/")
    callers = {
        "member": factories.person("mia", groups=["Release"]),
        "cyd": factories.cyd(),
        # May change teams, but sees this one not at all.
        "stranger": factories.person("sid", perms=["gates.change_team"]),
    }
    client = client_of(callers[who])

    add = client.get(f"/teams/{team().pk}/channels/add/mail/").status_code
    assert add == (403 if who == "member" else 404)
    for act in ("", "test/", "secret/", "remove/"):
        method = client.get if not act else client.post
        assert method(f"/channels/{made.pk}/{act}").status_code == 404
    made.refresh_from_db()
    assert made.removed_at is None


def test_one_persons_channel_is_another_ones_404_even_for_operators() -> None:
    made = ways.service_of("ada")

    for who in (factories.ben(), factories.cyd(), factories.operator(), chief()):
        client = client_of(who)
        assert client.get(f"/channels/{made.pk}/").status_code == 404
        assert client.post(f"/channels/{made.pk}/remove/").status_code == 404
        assert client.post(f"/channels/{made.pk}/", {"name": "mine"}).status_code == 404
    made.refresh_from_db()
    assert (made.name, made.removed_at) == ("Chat", None)


def test_a_channel_is_changed_tested_and_removed_by_its_owner() -> None:
    made = ways.mail_to("ada")
    client = client_of(factories.ada())

    client.post(
        f"/channels/{made.pk}/", {"name": "My mail", "wants": ["failed"], "digest": "daily"}
    )
    made.refresh_from_db()
    assert (made.name, made.wants, made.digest) == ("My mail", ["failed"], "daily")

    client.post(f"/channels/{made.pk}/test/")
    ways.send_all()
    assert [sent.subject for sent in mailbox.outbox] == ["Obversa reaches this channel"]

    client.post(f"/channels/{made.pk}/remove/")
    made.refresh_from_db()
    assert made.removed_at is not None
    assert client.get(f"/channels/{made.pk}/").status_code == 404
    # What was sent stays in the log, where it went does not.
    assert "removed" not in client.get("/settings/").content.decode()
    assert Delivery.objects.get().state == "sent"


def test_a_removed_channel_keeps_neither_address_nor_secret_nor_messages_that_wait() -> None:
    made = ways.webhook_of("Release", "https://example.com/s3cr3t")
    factories.pending_gate(audience={"groups": ["Release"]})
    spread()

    channels.remove(made)

    made.refresh_from_db()
    assert (made.address, made.secret) == ("", "")
    assert ways.states() == [("gate.requested", "withdrawn")]


def test_a_new_secret_takes_the_place_of_the_old_one() -> None:
    made = ways.webhook_of("Release", "https://example.com/")
    old = made.secret

    shown = client_of(chief()).post(f"/channels/{made.pk}/secret/")

    made.refresh_from_db()
    assert made.secret != old
    assert made.secret in shown.content.decode()


def test_nobody_has_more_than_ten_channels() -> None:
    for _ in range(channels.MOST):
        ways.service_of("ada")

    response = client_of(factories.ada()).post("/channels/add/service/", SLACK)

    assert response.status_code == 422
    assert Channel.objects.count() == channels.MOST


def test_quiet_hours_are_kept_with_their_zone() -> None:
    client = client_of(factories.ada())
    night = {"quiet_from": "22:00", "quiet_until": "07:30", "zone": "Europe/Berlin"}

    assert client.post("/settings/quiet-hours/", night).status_code == 302

    kept = Preference.objects.get(user__username="ada")
    assert (kept.quiet_from, kept.quiet_until) == (time(22), time(7, 30))
    page = page_of(client.get("/settings/"))
    assert page.by_id("id_quiet_from").get("value") == "22:00"
    client.post("/settings/quiet-hours/", {"zone": "UTC"})
    kept.refresh_from_db()
    assert (kept.quiet_from, kept.zone) == (None, "UTC")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"quiet_from": "22:00", "zone": "UTC"}, "id_quiet_until"),
        ({"quiet_until": "22:00", "zone": "UTC"}, "id_quiet_from"),
        ({"quiet_from": "22:00", "quiet_until": "22:00", "zone": "UTC"}, "id_quiet_until"),
        ({"quiet_from": "25:00", "quiet_until": "07:00", "zone": "UTC"}, "id_quiet_from"),
        ({"zone": "Mars/Olympus"}, "id_zone"),
        ({"zone": "../../etc/passwd"}, "id_zone"),
    ],
)
def test_quiet_hours_that_are_none_are_refused_at_their_field(
    given: dict[str, str], field: str
) -> None:
    response = client_of(factories.ada()).post("/settings/quiet-hours/", given)

    assert response.status_code == 422
    assert page_of(response).by_id(f"{field}_error").text
    assert not Preference.objects.exists()


def test_the_log_shows_ones_own_messages_and_operators_all() -> None:
    for name in ("ada", "eve"):
        ways.mail_to(name)
    factories.pending_gate(audience={"users": ["ada", "eve"]}, question="Approve <b>2.4.0</b>?")
    ways.send_all()

    def shown(who: Principal) -> int:
        html = client_of(who).get("/notifications/").content.decode()
        assert "<b>2.4.0</b>" not in html
        return html.count('id="delivery-')

    assert shown(factories.ada()) == 1
    assert shown(factories.operator()) == 2
    assert shown(factories.cyd()) == 0


def test_a_question_that_one_may_see_no_longer_is_not_told_by_the_log() -> None:
    person = factories.person("mia", groups=["Release"])
    ways.mail_to("mia")
    factories.pending_gate(audience={"groups": ["Release"]}, question="Sell the company?")
    ways.send_all()
    assert person.user is not None
    assert "Sell the company" in client_of(person).get("/notifications/").content.decode()
    person.user.groups.clear()

    html = client_of(factories.person("mia")).get("/notifications/").content.decode()

    assert "Sell the company" not in html
    assert "not yours to see any more" in html


def test_a_failed_message_is_sent_again_on_request_and_a_sent_one_is_not() -> None:
    person = factories.user("ada")
    channel = Channel.objects.create(user=person, kind="mail", name="Mail", wants=ways.ALL)
    factories.pending_gate()
    ways.send_all()
    delivery = Delivery.objects.get(channel=channel)
    assert delivery.state == "failed"
    User.objects.filter(pk=person.pk).update(email="ada@example.com")
    again = f"/notifications/{delivery.uid}/again/"

    assert client_of(factories.cyd()).post(again).status_code == 404
    assert client_of(factories.ada()).get(again).status_code == 405
    client_of(factories.ada()).post(again)
    ways.send_all()
    client_of(factories.ada()).post(again)
    ways.send_all()

    assert len(mailbox.outbox) == 1
    assert ways.states() == [("gate.requested", "sent")]


def test_the_log_and_the_settings_take_as_many_statements_with_thirty_messages_as_with_one() -> (
    None
):
    ways.mail_to("ada")
    client = client_of(factories.ada())

    def statements(address: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(address)
        return len(queries)

    factories.pending_gate()
    ways.send_all()
    addresses = ("/notifications/", "/settings/")
    few = [statements(address) for address in addresses]
    for number in range(29):
        factories.pending_gate(question=f"Release {number}?")
    ways.send_all()

    assert [statements(address) for address in addresses] == few


def test_older_messages_are_a_page_away() -> None:
    channel = ways.mail_to("ada")
    client = client_of(factories.ada())
    for _ in range(52):
        channels.test(channel)
    ways.send_all()

    first = page_of(client.get("/notifications/"))
    older = next(link for link in first.all("a") if link.text == "Older messages")
    rest = client.get(str(older.get("href"))).content.decode()

    assert rest.count('id="delivery-') == 2
    assert client.get("/notifications/?before=nonsense").status_code == 200


def test_keys_have_no_pages(client: Any) -> None:
    for address in ("/notifications/", "/channels/add/mail/"):
        assert client.get(address).status_code == 302
    assert client.post("/settings/quiet-hours/", {}).status_code == 302


def test_a_teams_page_shows_its_channels_to_those_who_may_change_them() -> None:
    made = ways.webhook_of("Release", "https://example.com/s3cr3t")
    member = factories.person("mia", groups=["Release"])
    address = f"/teams/{team().pk}/"

    page = page_of(client_of(chief()).get(address))
    assert "https://example.com/…" in page.by_id(f"channel-{made.pk}").text
    html = client_of(member).get(address).content.decode()
    assert "Where this team is told" not in html


def test_the_admin_shows_channels_and_messages_and_changes_none() -> None:
    made = ways.webhook_of("Release", "https://example.com/s3cr3t")
    factories.pending_gate(audience={"groups": ["Release"]})
    spread()
    root = User.objects.create_superuser("root")
    client = client_of(Principal.for_user(root))
    delivery = Delivery.objects.get()

    for address in (
        "/admin/gates/channel/",
        f"/admin/gates/channel/{made.pk}/change/",
        "/admin/gates/delivery/",
        f"/admin/gates/delivery/{delivery.pk}/change/",
    ):
        html = client.get(address).content.decode()
        assert "example.com" in html or "Hook" in html
        assert "s3cr3t" not in html
        assert ways.SECRET not in html
    for address in ("/admin/gates/channel/add/", f"/admin/gates/delivery/{delivery.pk}/delete/"):
        assert client.get(address).status_code == 403
    client.post(f"/admin/gates/channel/{made.pk}/change/", {"name": "mine"})
    made.refresh_from_db()
    assert made.name == "Hook"
