from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gates import services
from gates.models import Request
from runs.models import Artifact
from tests import factories
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db
HX = {"HX-Request": "true"}


def act(client: Client, name: str, row: Request, *, hx: bool = True, **given: Any) -> Any:
    headers = HX if hx else {}
    return client.post(reverse(f"gates:{name}", args=[row.pk]), given, headers=headers)


def yes(note: str) -> dict[str, Any]:
    return {"f-approved": "true", "f-note": note}


def fields(page: Page) -> dict[str, Any]:
    """The hidden fields of the answer form, as the page holds them."""
    named = page.all("input", type="hidden")
    return {one.attributes["name"]: one.attributes.get("value", "") for one in named}


def test_a_claim_answers_with_the_form_and_what_changed_around_it() -> None:
    row = factories.external_request()
    page = page_of(act(client_of(factories.ada()), "claim", row))

    pk = row.pk
    assert page.by_id(f"gate-{pk}-decision").get("data-mode") == "answer"
    assert page.targets[:7] == [
        f"#gate-{pk}-state", f"#gate-{pk}-banner", f"#gate-{pk}-strip", f"#gate-{pk}-who-part",
        f"#gate-{pk}-timeline", f"#row-{pk}", "#inbox-count",
    ]  # fmt: skip
    assert "yours to answer" in page.by_id(f"gate-{pk}-state").text
    assert page.by_id(f"row-{pk}").get("data-claim") == "you"
    assert page.by_id("tab-mine-count").text == "1"
    assert [one.text for one in page.all(class_="timeline-what")] == ["asked", "claimed"]


def test_without_htmx_every_act_ends_in_a_redirect_to_the_question() -> None:
    row = factories.external_request()
    client = client_of(factories.ada())

    acts: list[tuple[str, dict[str, Any]]] = [
        ("claim", {}),
        ("release", {}),
        ("claim", {}),
        ("answer", {"f-approved": "false", "digest": row.digest}),
    ]
    for name, given in acts:
        response = act(client, name, row, hx=False, **given)
        assert (response.status_code, response["Location"]) == (302, row.get_absolute_url())


def test_the_form_on_the_page_is_enough_to_answer() -> None:
    row = factories.external_request()
    client = client_of(factories.ada())
    page = page_of(act(client, "claim", row))

    response = act(client, "answer", row, **fields(page), **yes("Fine"))

    answered = page_of(response)
    assert answered.by_id(f"gate-{row.pk}-decision").get("aria-label") == "Receipt"
    assert answered.by_id(f"row-{row.pk}").get("data-claim") == "answered"
    assert row.responses.get().response == {"approved": True, "note": "Fine"}


@pytest.mark.parametrize(
    ("name", "value"), [("digest", "0" * 64), ("digest", ""), ("claim_token", "stolen")]
)
def test_a_changed_hidden_field_records_nothing(name: str, value: str) -> None:
    row = factories.external_request()
    client = client_of(factories.ada())
    sent = fields(page_of(act(client, "claim", row))) | {name: value, **yes("")}

    response = act(client, "answer", row, **sent)

    assert response.status_code == 409
    assert page_of(response).one(role="alert").text
    assert not row.responses.exists()


def test_the_second_to_claim_reads_who_holds_it_and_gets_409() -> None:
    row = factories.external_request(audience={"users": ["ada", "eve"]})
    services.claim(row.pk, principal=factories.ada())

    response = act(client_of(factories.person("eve")), "claim", row)

    assert response.status_code == 409
    page = page_of(response)
    assert page.by_id(f"gate-{row.pk}-decision").get("data-mode") == "held"
    assert "ada" in page.one(role="alert").text


def test_an_answer_too_late_shows_the_one_that_won_and_keeps_the_note() -> None:
    row = factories.external_request(audience={"users": ["ada", "eve"]})
    services.submit(
        row.pk,
        principal=factories.ada(),
        token=None,
        digest=row.digest,
        response={"approved": False},
    )
    client = client_of(factories.person("eve"))

    response = act(client, "answer", row, digest=row.digest, **yes("<b>mine</b>"))

    assert response.status_code == 409
    (alert,) = page_of(response).all(role="alert")
    assert "ada answered first: refused" in alert.text
    assert "<b>mine</b>" in alert.text
    assert row.responses.count() == 1


def test_an_answer_without_a_verdict_is_refused_and_asks_again() -> None:
    row = factories.external_request()
    client = client_of(factories.ada())
    act(client, "claim", row)

    response = act(client, "answer", row, digest=row.digest, **{**yes("Kept"), "f-approved": ""})

    assert response.status_code == 422
    page = page_of(response)
    assert "The answer was not recorded." in page.one(role="alert").text
    assert page.one("textarea", name="f-note").text == "Kept"
    assert not row.responses.exists()


def test_a_force_release_asks_for_a_reason_and_is_told_to_everybody() -> None:
    row = factories.external_request()
    services.claim(row.pk, principal=factories.ada())
    client = client_of(factories.operator())

    assert act(client, "force-release", row, reason="  ").status_code == 422
    row.refresh_from_db()
    assert row.status == Request.Status.CLAIMED
    page = page_of(act(client, "force-release", row, reason="She is away"))

    assert [one.text for one in page.all(class_="timeline-what")][-1] == "claim taken away"
    assert [one.text for one in page.all(class_="timeline-note")] == ["She is away"]
    row.refresh_from_db()
    assert row.status == Request.Status.PENDING


@pytest.mark.parametrize("count", [1, 30])
def test_the_page_of_a_question_takes_as_many_statements_however_much_happened(count: int) -> None:
    row = factories.external_request()
    for _ in range(count):
        services.claim(row.pk, principal=factories.ada())
        services.release(row.pk, principal=factories.ada())
    client = client_of(factories.ada())
    client.get(row.get_absolute_url())
    with CaptureQueriesContext(connection) as queries:
        page = page_of(client.get(row.get_absolute_url()))

    assert len(page.all(class_="timeline-what")) == 1 + 2 * count
    assert len(queries) <= 30


def facts_of(page: Page) -> dict[str, str]:
    (shown,) = page.all("dl", class_="facts")
    pairs = [one.children for one in shown.children]
    return {label.text: value.text for label, value in pairs}


def test_the_subject_is_told_in_words_lists_and_links() -> None:
    digest = "sha256:" + "ab" * 32
    row = factories.external_request(
        input={
            "version": "2.0.0",
            "push": False,
            "digest": "sha256:" + "cd" * 32,
            "commits": [{"id": "abc1234", "author": "Ana", "subject": "Fix it"}],
            "lines": ["one", "two"],
            "archive": {"name": "shop.tar.gz", "digest": digest, "size": 9},
            "nothing": None,
        }
    )
    Artifact.objects.create(
        run=row.run, digest=digest, name="shop.tar.gz", size=2100, seq=1,
        created_at=row.created_at,
    )  # fmt: skip
    page = page_of(client_of(factories.ada()).get(row.get_absolute_url()))
    facts = facts_of(page)

    assert facts["version"] == "2.0.0"
    assert facts["push"] == "no"
    assert facts["digest"] == "cdcdcdcdcdcd copy"
    assert facts["commits"] == "id subject author abc1234 Fix it Ana"
    assert facts["lines 2"] == "one two"
    assert facts["archive"].startswith("shop.tar.gz 2.1 kB abababababab")
    assert "nothing" not in facts
    link = next(one for one in page.all("a") if one.text == "shop.tar.gz")
    assert link.get("href") == reverse("runs:artifact", args=[row.run_id, digest])


def test_an_author_chooses_what_is_shown_and_how() -> None:
    row = factories.external_request(
        input={"log": ["a", "b"], "count": 40, "hidden": "x"},
        presentation={
            "summary": [
                {"label": "Log", "pointer": "/log", "as": "output"},
                {"label": "All", "pointer": "/log", "count": "/count"},
                {"label": "Gone", "pointer": "/nowhere"},
                "nonsense",
            ],
            "yesLabel": "Ship 2.0.0",
        },
    )
    client = client_of(factories.ada())
    page = page_of(client.get(row.get_absolute_url()))

    assert facts_of(page) == {"Log": "a b", "All 40": "a b 38 more stand in the raw data."}
    assert page.one("pre", class_="output").text == "a b"
    buttons = page_of(act(client, "claim", row)).all("button", data_verdict="yes")
    assert [one.text for one in buttons] == ["Ship 2.0.0"]


def test_labels_of_the_buttons_name_what_the_run_was_started_with() -> None:
    job = factories.release_job(presentation={"yesLabel": "Approve {version}", "n": 1})
    row = factories.pending_gate(factories.make_run(job, params={"version": "2.0.0"}))

    assert row.presentation == {"yesLabel": "Approve 2.0.0", "n": 1}


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        "",
        0,
        [[[]]],
        {"a": {"b": [1, {"c": None}]}},
        "x" * 100_000,
        list(range(9_000)),
    ],
)
def test_any_input_makes_a_page(given: Any) -> None:
    row = factories.external_request(input={"given": given})
    response = client_of(factories.ada()).get(row.get_absolute_url())

    assert response.status_code == 200
    assert len(response.content) < 2_000_000


def test_markup_in_every_text_stays_text() -> None:
    evil = "<img src=x onerror=alert(1)>\u202e"
    row = factories.external_request(
        text=f"{evil} [a](javascript:alert(1)) <script>alert(1)</script>",
        gate_id=evil,
        stream=evil,
        input={evil: [evil, {evil: evil}]},
        presentation={"yesLabel": evil, "noLabel": evil, "reasons": [evil]},
    )
    ada = factories.person("ada", first_name=evil)
    client = client_of(ada)
    for response in (client.get(row.get_absolute_url()), act(client, "claim", row)):
        page = page_of(response)
        assert page.all("img") == []
        assert [one for one in page.elements if one.get("onerror")] == []
        assert [one for one in page.all("a") if "javascript" in (one.get("href") or "")] == []
        assert [one for one in page.all("script") if one.text] == []
        assert [one for one in page.elements if "\u202e" in one.text] == []


def test_who_sees_a_question_and_not_its_stream_gets_no_link_to_it() -> None:
    row = factories.external_request()
    page = page_of(client_of(factories.ada()).get(row.get_absolute_url()))

    assert [one for one in page.all("a") if "/runs/" in (one.get("href") or "")[:6]] != []
    assert [one for one in page.all("a") if one.get("href") == row.run.get_absolute_url()] == []
