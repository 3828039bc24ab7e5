from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from gates.teams import places
from runs import fn_job
from runs.models import Run
from tests import factories, flows
from tests.pages import page_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def group() -> Group:
    return Group.objects.create(name="Release")


def client_of(who: Any) -> Client:
    client = Client()
    client.force_login(who.user)
    return client


def chief() -> Client:
    return client_of(factories.person("kim", groups=["Release"], perms=["gates.change_team"]))


def address(group: Group) -> str:
    return reverse("gates:team-places", args=[group.pk])


def started(count: int) -> list[Run]:
    from runs import services

    name = flows.offer(fn_job("theirs", lambda ctx: "done"), audience={"groups": ["Release"]})
    return [services.start_run(name, {}, actor="user:1") for _ in range(count)]


def test_who_may_change_the_team_says_how_many_runs_go_at_once(group: Group) -> None:
    kim = chief()
    assert page_of(kim.get(address(group))).all("form", action=address(group))

    assert kim.post(address(group), {"most": "2"}).status_code == 302
    runs = started(3)

    assert [flows.fresh(run).admission for run in runs] == ["admitted", "admitted", "queued"]
    assert "Runs at once: 2." in LogEntry.objects.get().change_message
    shown = page_of(kim.get(reverse("gates:team", args=[group.pk]))).one("main").text
    assert "2 runs at once, 2 under way, 1 in the queue" in shown


def test_a_higher_limit_and_none_let_in_who_waits_at_once(group: Group) -> None:
    kim = chief()
    kim.post(address(group), {"most": "1"})
    runs = started(4)

    kim.post(address(group), {"most": "2"})
    assert [flows.fresh(run).admission for run in runs].count("admitted") == 2

    kim.post(address(group), {"most": ""})
    assert [flows.fresh(run).admission for run in runs].count("admitted") == 4
    assert places.in_words(group) == ""


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5", "10001", "9" * 400])
def test_what_is_no_limit_is_said_on_its_field_and_changes_nothing(
    group: Group, wrong: str
) -> None:
    told = chief().post(address(group), {"most": wrong})

    assert told.status_code == 422
    assert places.limit_of(group) is None


def test_a_member_without_the_right_may_not_and_others_do_not_know_the_team(group: Group) -> None:
    mia = client_of(factories.person("mia", groups=["Release"]))
    assert mia.get(address(group)).status_code == 403
    assert mia.post(address(group), {"most": "2"}).status_code == 403
    assert client_of(factories.cyd()).post(address(group), {"most": "2"}).status_code == 404
    assert places.limit_of(group) is None
