"""Spans from the request to the step: what they say, what they never say, and none unless asked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.test import Client
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gates import keys
from gates.models import Request
from obversa_site import telemetry
from obversa_site.checks import traces_can_be_made
from runs import approval, fn_job, pipeline, tasks, traces
from runs.models import Attempt, Run
from tests import factories, flows
from tests.gates.notify import ways

SECRET = "hunter2-of-the-payload"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    made = InMemorySpanExporter()
    telemetry.begin(made)
    yield made
    telemetry.end()


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def work_as_embedded(run: Run) -> None:
    """What the embedded dispatcher does, until nothing is ready."""
    ready = Attempt.objects.filter(run=run, status="ready")
    while (found := ready.values_list("pk", "trace").first()) is not None:
        tasks.execute.apply(
            (found[0],), throw=True, headers={"traceparent": found[1]} if found[1] else None
        )


@pytest.mark.django_db(transaction=True)
def test_a_trace_leads_from_the_request_through_the_steps_and_on_from_the_answer(
    exporter: InMemorySpanExporter,
) -> None:
    job = pipeline(
        "traced",
        [
            {"name": "build", "job": fn_job("build", lambda ctx: "built")},
            {"name": "test", "job": fn_job("test", lambda ctx: SECRET)},
            {"name": "ok", "job": approval("ok", f"Ship {SECRET}?")},
            {"name": "ship", "job": fn_job("ship", lambda ctx: "shipped")},
        ],
    )
    flows.offer(job, name="traced", params={"type": "object"})
    bearer = {"Authorization": f"Bearer {keys.create_key('bot', ['read', 'start'])[1]}"}
    sent = {"workflow": "traced", "params": {"password": SECRET}}
    client = Client(headers=bearer)

    started = client.post("/api/v1/runs", sent, content_type="application/json")
    run = Run.objects.get(pk=started.json()["id"])
    work_as_embedded(run)

    (request,) = named(exporter, "POST /api/v1/runs")
    turns, steps = named(exporter, "obversa.turn"), named(exporter, "obversa.step")
    assert [facts(step)["obversa.step"].split("/")[-1] for step in steps] == ["build", "test"]
    for span in (*turns, *steps, *named(exporter, "runs.execute")):
        assert trace_of(span) == trace_of(request), span.name
    for step in steps:
        told = facts(step)
        assert told["obversa.run_id"] == str(run.pk)
        assert told["obversa.workflow"] == "traced"
        assert told["obversa.outcome"] == "pass"
        assert isinstance(told["obversa.attempt"], int)
    assert facts(request)["http.response.status_code"] == 201

    asked = Request.objects.get(run=run)
    exporter.clear()
    answers = {"Authorization": f"Bearer {keys.create_key('all', ['read', 'answer'])[1]}"}
    body = {"digest": asked.digest, "response": {"approved": True}}
    client = Client(headers=answers)
    client.post(f"/api/v1/requests/{asked.pk}/submit", body, content_type="application/json")
    work_as_embedded(run)

    (request,) = [one for one in exporter.get_finished_spans() if one.name.endswith("/submit")]
    assert str(asked.pk) not in request.name
    (answer,) = named(exporter, "obversa.answer")
    (ship,) = named(exporter, "obversa.step")
    assert facts(answer)["obversa.question"] == str(asked.pk)
    assert trace_of(answer) == trace_of(ship) == trace_of(request)
    assert flows.fresh(run).status == "passed"


@pytest.mark.django_db(transaction=True)
def test_no_span_holds_what_somebody_wrote_or_what_lets_somebody_in(
    exporter: InMemorySpanExporter, client: Client
) -> None:
    def fails(ctx: Any) -> str:
        raise ValueError(f"{SECRET} did not fit")

    flows.offer(fn_job("failing", fails), name="failing", params={"type": "object"})
    run = flows.start(fn_job("failing", fails), {"password": SECRET}, schema={"type": "object"})
    work_as_embedded(run)
    client.get(f"/sign-in/{SECRET}/{SECRET}/?next={SECRET}")
    client.get(f"/nowhere/{SECRET}")
    client.generic(SECRET, "/healthz")
    ways.mail_to("ada")
    factories.pending_gate(question=f"Ship {SECRET}?")
    ways.send_all()

    spans = exporter.get_finished_spans()
    assert {"obversa.step", "obversa.turn", "obversa.notify"} <= {span.name for span in spans}
    assert SECRET not in "".join(span.to_json() for span in spans)
    assert "ada@" not in "".join(span.to_json() for span in spans)


@pytest.mark.django_db(transaction=True)
def test_a_trace_that_a_caller_began_goes_on_and_one_that_is_none_does_not(
    exporter: InMemorySpanExporter, client: Client
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    client.get("/healthz", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    client.get("/healthz", headers={"traceparent": "00-zz\r\nX: y-01"})
    client.get("/healthz", headers={"traceparent": "0" * 5_000})

    first, *others = named(exporter, "GET /healthz")
    assert f"{trace_of(first):032x}" == trace
    assert all(span.parent is None for span in others)
    assert len(others) == 2


@pytest.mark.django_db(transaction=True)
def test_a_step_sent_again_by_the_sweep_belongs_where_it_was_made_due(
    exporter: InMemorySpanExporter,
) -> None:
    with traces.span("the request"):
        run = flows.start(fn_job("late", lambda ctx: "done"))
    pk = Attempt.objects.get(run=run).pk
    with traces.span("the sweep"):
        swept = traces.here()
    tasks.execute.apply((pk,), throw=True, headers={"traceparent": swept})

    (step,), (request,) = named(exporter, "obversa.step"), named(exporter, "the request")
    (task,) = named(exporter, "runs.execute")
    assert trace_of(step) == trace_of(request) != trace_of(task)
    assert [link.context for link in step.links] == [task.context]


def test_an_error_is_named_by_its_kind_alone(exporter: InMemorySpanExporter) -> None:
    def fail() -> None:
        with traces.span("failing"):
            raise ValueError(SECRET)

    with pytest.raises(ValueError, match=SECRET):
        fail()
    (span,) = exporter.get_finished_spans()

    assert facts(span) == {"error.type": "ValueError"}
    assert span.status.status_code.name == "ERROR"
    assert not span.events
    assert SECRET not in span.to_json()


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "obversa"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
    ],
)
def test_the_standard_variables_ask_for_traces(environment: dict[str, str], wanted: bool) -> None:
    assert telemetry.is_wanted(environment) is wanted


def test_nothing_of_it_is_loaded_unless_asked_for() -> None:
    """In a process of its own: this one has loaded it."""
    code = (
        "import django, json, sys; django.setup();"
        "from django.test import Client; Client().get('/healthz');"
        "from runs import traces; assert traces.used() is None;"
        # The client of Redis looks for the rest by itself, when it is installed.
        "print(json.dumps([m for m in sys.modules if m.startswith('opentelemetry.exporter')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(settings.BASE_DIR),
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout) == []


def _environment() -> dict[str, str]:
    import os

    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return kept | {"DJANGO_SETTINGS_MODULE": "obversa_site.settings"}


def test_without_tracing_there_is_no_span_and_no_middleware() -> None:
    assert traces.used() is None
    assert traces.here() == ""
    with traces.span("nothing", run_id="7") as span:
        span.note(more=1)
        span.fail("nothing")
    with pytest.raises(MiddlewareNotUsed):
        telemetry.span_of_request(lambda request: None)  # type: ignore[arg-type, return-value]


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert traces_can_be_made(None) == []
    monkeypatch.setattr(telemetry, "is_wanted", lambda: True)
    assert traces_can_be_made(None) == []
    monkeypatch.setattr(telemetry, "is_installed", lambda: False)
    (warning,) = traces_can_be_made(None)
    assert "obversa[otel]" in str(warning.hint)
