"""Spans of a web process and of Celery workers, as a collector of OTLP over HTTP gets them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gates import keys
from obversa_site import telemetry
from runs import sweep
from runs.models import Run
from tests import flows, receivers
from tests.services import flow
from tests.services.conftest import Worker
from tests.services.test_celery import status, until

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]


def received(collector: receivers.Receiver) -> list[tuple[str, Span]]:
    """Every span that came, with the name of its service."""
    found = []
    for _, body in list(collector.got):
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                found += [(names["service.name"], span) for span in scope.spans]
    return found


def facts(span: Span) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[receivers.Receiver]:
    with receivers.receiver() as made:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", made.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        yield made


def test_a_collector_gets_one_trace_from_the_request_to_the_steps_of_other_processes(
    collector: receivers.Receiver,
    start_worker: Worker,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A second message for the same step may be the one that is taken, and hangs on the turn itself.
    monkeypatch.setattr(sweep, "RESEND_AFTER", timedelta(minutes=5))
    effect, retry_safe = flow.EFFECTS["asks"]
    flows.offer(flow.main_job("asks", effect, retry_safe=retry_safe))
    key = keys.create_key("bot", ["read", "start"])[1]
    telemetry.begin()
    try:
        client = Client(headers={"Authorization": f"Bearer {key}"})
        started = client.post("/api/v1/runs", {"workflow": "asks"}, content_type="application/json")
        assert started.status_code == 201, started.content
        run = Run.objects.get(pk=started.json()["id"])
        # Prefork, as workers are by default: its children are made after tracing was set up.
        with start_worker(OTEL_SERVICE_NAME="obversa-worker"):
            until(lambda: status(run) == "waiting", home)
            until(lambda: len(_steps(collector)) >= 4, home)
    finally:
        telemetry.end()

    spans = received(collector)
    (request,) = [one for _, one in spans if one.name == "POST /api/v1/runs"]
    steps = _steps(collector)
    assert {service for service, one in spans if one.name == "obversa.step"} == {"obversa-worker"}
    assert {one.trace_id for one in steps} == {request.trace_id}
    assert {facts(one)["obversa.run_id"] for one in steps} == {str(run.pk)}
    # Build, review, and both again.
    assert [facts(one)["obversa.step"].split("/")[-1] for one in steps] == [
        "build", "review", "build", "review",
    ]  # fmt: skip
    by_id = {one.span_id: one for _, one in spans}
    first: Span | None = steps[0]
    names = []
    while first is not None:
        names.append(first.name)
        first = by_id.get(first.parent_span_id)
    assert names[0] == "obversa.step"
    assert names[1] == "runs.execute"
    assert names[-1] == "POST /api/v1/runs"
    assert "obversa.dispatch" in names


def _steps(collector: receivers.Receiver) -> list[Span]:
    found = [one for _, one in received(collector) if one.name == "obversa.step"]
    return sorted(found, key=lambda one: one.start_time_unix_nano)
