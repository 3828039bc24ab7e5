"""What the socket of a page is told, by whom the page is looked at."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from gates import queries, services
from gates.fragments import InboxNews
from gates.models import Request
from gates.principals import Principal
from tests import factories
from tests.pages import Page

pytestmark = pytest.mark.django_db


def news_of(who: Principal) -> InboxNews:
    """A page that has just been opened."""
    assert who.user is not None
    news = InboxNews(who.user.pk)
    news.frame()
    return news


def told(news: InboxNews) -> dict[str, str]:
    """What the next frame brings, by the places it goes to."""
    return {one.attributes["hx-target"]: one.text for one in Page(news.frame()).all("hx-partial")}


def test_whoever_may_only_look_hears_of_a_claim_and_of_the_answer() -> None:
    row = factories.external_request()
    ben, cyd = news_of(factories.ben()), news_of(factories.cyd())

    services.claim(row.pk, principal=factories.ada())
    claimed = told(ben)
    again = told(ben)
    services.submit(
        row.pk,
        principal=factories.ada(),
        token=None,
        digest=row.digest,
        response={"approved": True},
    )
    answered = told(ben)

    assert "ada claimed this question." in claimed[f"#gate-{row.pk}-banner"]
    assert "claimed" in claimed[f"#gate-{row.pk}-timeline"]
    assert again == {}
    assert "ada answered this question" in answered[f"#gate-{row.pk}-banner"]
    assert "approved" in answered[f"#queue-{row.pk} > .claim"]
    assert told(cyd) == {}


def test_whoever_may_only_look_is_offered_no_new_question() -> None:
    ben = news_of(factories.ben())

    factories.external_request()

    assert told(ben) == {}


def test_a_change_far_down_a_long_list_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gates.fragments.WATCHED", 2)
    rows = [factories.external_request(gate_id=f"gate-{number}") for number in range(5)]
    ben = news_of(factories.ben())
    last = Request.objects.get(pk=rows[4].pk)

    services.claim(last.pk, principal=factories.ada())

    assert "ada claimed" in told(ben)[f"#gate-{last.pk}-banner"]


def test_what_a_reading_that_broke_would_have_told_is_told_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    news = news_of(factories.ada())
    factories.external_request()

    def broken(*_: object) -> list[Request]:
        raise OperationalError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(queries, "open_elsewhere", broken)
        with pytest.raises(OperationalError):
            news.frame()
    after = told(news)

    assert after["#inbox-count"].startswith("1")
    assert "#inbox-news" in after
