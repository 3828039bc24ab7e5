from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gates import services
from gates.models import Request
from tests import factories
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db


def statements(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


@pytest.mark.parametrize("tab", ["mine", "unclaimed", "others", "asked", "history"])
def test_the_inbox_takes_as_many_statements_for_thirty_rows_as_for_one(tab: str) -> None:
    client = client_of(factories.ada())

    def add() -> None:
        row = factories.external_request(audience={"users": ["ada", "eve"]}, by=factories.ada())
        if tab in ("mine", "others"):
            holder = factories.ada() if tab == "mine" else factories.person("eve")
            services.claim(row.pk, principal=holder)
        if tab == "history":
            services.withdraw(row.pk, principal=factories.ada(), reason="No longer needed")

    add()
    address = f"/?tab={tab}"
    statements(client, address)
    few = statements(client, address)
    for _ in range(29):
        add()

    assert statements(client, address) == few
    rows = page_of(client.get(address)).by_id("inbox-list").children
    assert len(rows) == 30


def test_a_page_of_the_inbox_has_fifty_rows_and_a_way_to_the_rest() -> None:
    for _ in range(53):
        factories.external_request()
    client = client_of(factories.ada())

    first = page_of(client.get("/"))
    following = first.one("a", rel="next").attributes["href"]
    second = page_of(client.get(following))

    shown = [row.get("id") for page in (first, second) for row in page.by_id("inbox-list").children]
    assert len(shown) == len(set(shown)) == 53


def test_the_first_tab_is_what_one_holds_and_else_what_nobody_holds() -> None:
    row = factories.external_request()
    factories.external_request()
    client = client_of(factories.ada())

    def current() -> list[str]:
        return [one.text for one in page_of(client.get("/")).all("a", aria_current="page")]

    assert current() == ["Inbox 2 waiting", "Unclaimed 2"]
    services.claim(row.pk, principal=factories.ada())

    assert current() == ["Inbox 2 waiting", "Mine 1"]


def test_the_page_of_a_question_opens_the_tab_it_stands_in() -> None:
    row = factories.external_request(audience={"users": ["ada", "eve"]})
    ada, eve = client_of(factories.ada()), client_of(factories.person("eve"))

    def tab(client: Client) -> str:
        page = page_of(client.get(row.get_absolute_url()))
        return str(page.by_id("inbox-list").get("data-tab"))

    assert tab(ada) == "unclaimed"
    services.claim(row.pk, principal=factories.ada())
    assert (tab(ada), tab(eve)) == ("mine", "others")
    services.withdraw(row.pk, principal=factories.key(), reason="Over")
    assert tab(ada) == "history"


@pytest.mark.parametrize("q", ["release", "APPROVE", "%", "'; DROP TABLE", "\0", "zzzz"])
def test_a_search_finds_words_and_breaks_on_nothing(q: str) -> None:
    factories.external_request()
    page = page_of(client_of(factories.ada()).get("/", {"q": q, "tab": "unclaimed"}))

    found = len(page.by_id("inbox-list").children)
    assert found == (1 if q in ("release", "APPROVE", "\0") else 0)


def test_a_search_finds_the_start_of_a_fingerprint() -> None:
    row = factories.external_request()
    factories.external_request(text="Another?")
    page = page_of(client_of(factories.ada()).get("/", {"q": row.digest[:10], "tab": "unclaimed"}))

    assert [one.get("id") for one in page.by_id("inbox-list").children] == [f"row-{row.pk}"]


def test_a_broken_cursor_is_a_bad_request_and_no_failure() -> None:
    response = client_of(factories.ada()).get("/", {"cursor": "nonsense"})

    assert response.status_code == 400


PAGES = ("/", "/runs/", "/workflows/", "/teams/", "/settings/")


@pytest.mark.parametrize("address", PAGES)
def test_nobody_reads_a_page_without_signing_in(address: str) -> None:
    response = Client().get(address)

    assert response.status_code == 302
    assert response["Location"] == f"{reverse('sign-in')}?next={address}"


def test_only_who_may_see_a_question_finds_it_on_any_page() -> None:
    row = factories.external_request(text="A secret question?")
    for name, who, status in (
        ("ada", factories.ada(), 200),
        ("ben", factories.ben(), 200),
        ("cyd", factories.cyd(), 404),
    ):
        client = client_of(who)
        assert client.get(row.get_absolute_url()).status_code == status
        everywhere = [client.get(address).content.decode() for address in (*PAGES, "/?tab=history")]
        assert any("A secret question?" in html for html in everywhere) is (name == "ada")


ACTS = ("claim", "release", "answer", "force-release", "withdraw")


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("hx", [True, False])
def test_an_act_on_what_one_may_not_see_is_404_and_on_what_one_may_only_see_403(
    act: str, hx: bool
) -> None:
    row = factories.external_request()
    address = reverse(f"gates:{act}", args=[row.pk])
    given = {"f-approved": "true", "digest": row.digest, "reason": "Because"}
    headers = {"HX-Request": "true"} if hx else {}

    assert client_of(factories.cyd()).post(address, given, headers=headers).status_code == 404
    assert client_of(factories.ben()).post(address, given, headers=headers).status_code == 403

    row.refresh_from_db()
    assert row.status == Request.Status.PENDING
    assert not row.responses.exists()


@pytest.mark.parametrize("act", ACTS)
def test_an_act_takes_a_post_with_its_token_from_somebody_signed_in(act: str) -> None:
    row = factories.external_request()
    address = reverse(f"gates:{act}", args=[row.pk])
    strict = client_of(factories.ada(), enforce_csrf_checks=True)

    assert strict.get(address).status_code == 405
    assert strict.post(address, {"f-approved": "true"}).status_code == 403
    assert Client().post(address).status_code == 302
    row.refresh_from_db()
    assert row.status == Request.Status.PENDING


def test_ten_megabytes_are_413_whatever_they_are_sent_to() -> None:
    row = factories.external_request()
    client = client_of(factories.ada())
    address = reverse("gates:answer", args=[row.pk])

    response = client.post(address, {"f-note": "x" * 10_000_000})

    assert response.status_code == 413
    assert "larger than" in response.content.decode()
