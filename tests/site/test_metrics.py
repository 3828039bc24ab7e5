from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gates import keys, services
from gates.models import Delivery, Request, Response
from gates.notify.spread import spread
from obversa_site.operations import broker, crew
from runs.archive import retention
from runs.models import Attempt, Heartbeat, Run
from tests import factories
from tests.gates.notify import ways

pytestmark = pytest.mark.django_db


def scraped(client: Client, key: str) -> dict[str, float]:
    """Name and labels of each sample, as Prometheus would read it."""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.content.decode().splitlines()
    samples = (re.fullmatch(r"([^# ]+) (\S+)", line) for line in lines)
    return {found[1]: float(found[2]) for found in samples if found}


@pytest.fixture
def key() -> str:
    return keys.create_key("prometheus", ["read"])[1]


def test_what_waits_and_for_how_long(client: Client, key: str) -> None:
    first, second = factories.pending_gate(), factories.pending_gate()
    asked = timezone.now() - timedelta(minutes=2)
    Request.objects.filter(pk=first.pk).update(created_at=asked, due_at=asked)
    services.submit(
        second.pk,
        principal=factories.ada(),
        token=None,
        digest=second.digest,
        response={"approved": True},
    )
    Heartbeat.objects.create(name="s", role="sweep", at=timezone.now() - timedelta(seconds=30))
    Heartbeat.objects.create(name="t", role="sweep", at=timezone.now() - timedelta(seconds=9))

    found = scraped(client, key)

    assert found['obversa_runs{status="waiting"}'] == 1
    assert sum(found[f'obversa_runs{{status="{status}"}}'] for status in Run.Status.values) == 2
    assert found['obversa_open_requests{kind="gate"}'] == 1
    assert found['obversa_open_requests{kind="approval"}'] == 0
    assert 120 <= found['obversa_oldest_request_age_seconds{kind="gate"}'] < 150
    assert found["obversa_overdue_requests"] == 1
    assert found['obversa_attempts{status="ready"}'] == 1
    assert 0 <= found["obversa_oldest_ready_age_seconds"] < 30
    assert 0 <= found['obversa_answer_seconds{quantile="0.5"}'] < 30
    assert 9 <= found['obversa_heartbeat_age_seconds{role="sweep"}'] < 29


def test_what_is_done_once_an_hour_is_no_process_that_fell_silent(client: Client, key: str) -> None:
    retention.tidy_up()

    assert not [name for name in scraped(client, key) if "tidy" in name]
    assert crew.processes(timezone.now()) == []


def test_nothing_that_happened_is_no_number(client: Client, key: str) -> None:
    found = scraped(client, key)

    assert (
        found['obversa_answer_seconds{quantile="0.9"}']
        != found['obversa_answer_seconds{quantile="0.9"}']
    )
    assert found['obversa_runs{status="running"}'] == 0


def test_many_cost_no_more_statements_than_few(client: Client, key: str) -> None:
    factories.pending_gate()
    scraped(client, key)  # the first use of a key is noted
    with CaptureQueriesContext(connection) as few:
        scraped(client, key)
    for _ in range(5):
        factories.pending_gate()
    with CaptureQueriesContext(connection) as many:
        scraped(client, key)

    assert len(many) == len(few)


def test_only_those_who_may_see_everything_read_them(client: Client) -> None:
    own = keys.create_key("adas", ["read"], factories.user("ada"))[1]
    blind = keys.create_key("blind", ["answer"])[1]
    ended, ends = keys.create_key("ended", ["read"])
    keys.revoke(ended)

    def told(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return client.get("/metrics", headers=headers).status_code

    assert [told(key) for key in ("", ends, "nonsense")] == [401, 401, 401]
    assert [told(key) for key in (own, blind)] == [403, 403]
    client.force_login(factories.user("cyd"))
    assert client.get("/metrics").status_code == 403
    perms = ["runs.view_run", "gates.view_request"]
    client.force_login(factories.user("oda", perms=perms))
    assert client.get("/metrics").status_code == 200
    assert client.post("/metrics").status_code == 405


def test_prometheus_own_parser_reads_all_of_it(client: Client, key: str) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    factories.pending_gate()
    Heartbeat.objects.create(
        name='web@"odd\nhost"/1', role="web", at=timezone.now(),
        facts={"sockets": {"inbox": 2, "run": 3}},
    )  # fmt: skip
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {key}"})
    families = {one.name: one for one in text_string_to_metric_families(answer.content.decode())}

    assert len(families) >= 20
    assert all(name.startswith("obversa_") and one.documentation for name, one in families.items())
    assert {one.type for one in families.values()} == {"gauge", "counter"}
    assert sum(sample.value for sample in families["obversa_sockets"].samples) == 5
    assert families["obversa_answers"].type == "counter"


def test_what_ever_was_never_falls_when_rows_leave(client: Client, key: str) -> None:
    names = ("obversa_events_total", "obversa_attempts_made_total", "obversa_answers_total")

    def totals() -> dict[str, float]:
        found = scraped(client, key)
        return {name: found[name] for name in names}

    before = totals()
    gate = factories.pending_gate()
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )
    after = totals()
    assert all(after[name] > before[name] for name in names)
    assert after["obversa_answers_total"] == before["obversa_answers_total"] + 1
    Response.objects.all().delete()
    Attempt.objects.all().delete()

    assert totals() == after


def test_messages_that_wait_and_that_failed(client: Client, key: str) -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    spread()
    asked = timezone.now() - timedelta(minutes=3)
    Delivery.objects.update(created_at=asked)
    found = scraped(client, key)
    assert found['obversa_deliveries{status="pending"}'] == 1
    assert 180 <= found["obversa_oldest_delivery_age_seconds"] < 210

    Delivery.objects.update(state="failed", done_at=timezone.now())
    found = scraped(client, key)
    assert found['obversa_deliveries{status="pending"}'] == 0
    assert found['obversa_deliveries{status="failed"}'] == 1
    assert found["obversa_oldest_delivery_age_seconds"] == 0


def test_a_broker_that_does_not_say_has_no_depth(
    client: Client, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [name for name in scraped(client, key) if "depth" in name or "broker" in name]
    looked = [broker.Looked(True, {"steps": 7, "control": 0}), broker.Looked(False)]
    monkeypatch.setattr(broker, "look", lambda: looked[0])
    found = scraped(client, key)
    assert found['obversa_queue_depth{queue="steps"}'] == 7
    assert found['obversa_queue_depth{queue="control"}'] == 0
    assert 'obversa_queue_depth{queue="notify"}' not in found
    assert found["obversa_broker_up"] == 1

    looked.pop(0)
    found = scraped(client, key)
    assert found["obversa_broker_up"] == 0
    assert not [name for name in found if "depth" in name]


@pytest.mark.postgres
def test_no_big_table_is_read_whole(client: Client, key: str) -> None:
    from tests.benchmarks.many import fill
    from tests.gates.test_scale import TOTAL, read_whole

    fill(TOTAL, TOTAL // 100, vacuum=False)
    scraped(client, key)
    with CaptureQueriesContext(connection) as asked:
        scraped(client, key)

    assert read_whole([one["sql"] for one in asked]) == set()
