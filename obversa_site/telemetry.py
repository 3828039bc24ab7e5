"""OpenTelemetry: spans from the request to the step, when the standard environment asks for them.

Nothing of OpenTelemetry is loaded otherwise. A span names places and numbers: no parameter, answer,
address or text of an error is in one.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from celery import signals
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponseBase

from runs import traces

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

    from obversa_site.middleware import Handler

NAME: Final = "obversa"
FLUSH_MS: Final = 3_000
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_HEADER: Final = "traceparent"


def is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the standard variables ask for traces."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporter := environment.get("OTEL_TRACES_EXPORTER", "").strip().lower():
        return exporter != "none"
    return any(environment.get(name, "").strip() for name in _ENDPOINTS)


def is_installed() -> bool:
    """Whether the extra `obversa[otel]` is there."""
    names = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    try:
        return all(importlib.util.find_spec(name) is not None for name in names)
    except ModuleNotFoundError:
        return False


class Spans:
    """What `runs.traces` calls, made of OpenTelemetry."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.provider = provider
        self._trace = trace
        self._tracer = provider.get_tracer(NAME)
        self._carrier = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self, name: str, facts: Mapping[str, Any], parent: str = "", kind: str = "internal"
    ) -> Iterator[traces.Span]:
        """A span below the current one, or below `parent` (a `traceparent`) of another trace."""
        above, links = self._above(parent)
        with self._tracer.start_as_current_span(
            name,
            context=above,
            kind=self._trace.SpanKind[kind.upper()],
            attributes=_named(facts),
            links=links,
            # The text of an error may be an answer, or a part of one.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            made = _Made(self._trace, span)
            try:
                yield made
            except Exception as error:
                made.fail(type(error).__name__)
                raise

    def _above(self, parent: str) -> tuple[Any, list[Any]]:
        """Where the span belongs, and what else led to it."""
        if not parent:
            return None, []
        given = self._carrier.extract({_HEADER: parent})
        caller = self._trace.get_current_span(given).get_span_context()
        here = self._trace.get_current_span().get_span_context()
        if not caller.is_valid or here.trace_id == caller.trace_id:
            return None, []
        return given, [self._trace.Link(here)] if here.is_valid else []

    def here(self) -> str:
        """The current span as a `traceparent`; empty outside of one."""
        carrier: dict[str, str] = {}
        self._carrier.inject(carrier)
        return carrier.get(_HEADER, "")


class _Made:
    def __init__(self, trace: Any, span: Any) -> None:
        self._trace, self._span = trace, span

    def note(self, **facts: Any) -> None:
        self._span.set_attributes(_named(facts))

    def call(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, what: str) -> None:
        self._span.set_attribute("error.type", what)
        self._span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))


def _named(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts under our name; what has a dot has a name of OpenTelemetry's own."""
    return {
        name if "." in name else f"obversa.{name}": value
        for name, value in facts.items()
        if value not in (None, "")
    }


# --- on and off ----------------------------------------------------------------------------------


def begin(exporter: SpanExporter | None = None) -> None:
    """Send spans where the environment says; a test's `exporter` gets each at its end."""
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(resource=_resource(Resource), shutdown_on_exit=exporter is None)
    if exporter is not None:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    else:
        for made in _processors():
            provider.add_span_processor(made)
        # What the libraries of an author's step tell belongs below the span of that step.
        trace.set_tracer_provider(provider)
    traces.use(Spans(provider))
    _listen()


def end() -> None:
    """Send what is left, and make no more spans."""
    spans = traces.used()
    traces.use(None)
    if isinstance(spans, Spans):
        spans.provider.force_flush(FLUSH_MS)


def _resource(resource: Any) -> Any:
    from importlib.metadata import version

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
    ours = {"service.version": version(NAME)}
    if not (os.environ.get("OTEL_SERVICE_NAME") or _names_service()):
        ours["service.name"] = NAME
    return resource.create(ours)


def _names_service() -> bool:
    return "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _processors() -> Iterator[Any]:
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SimpleSpanProcessor,
    )

    names = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() or "otlp"
    for name in names.split(","):
        match name.strip():
            case "otlp":
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                yield BatchSpanProcessor(OTLPSpanExporter())
            case "console":
                yield SimpleSpanProcessor(ConsoleSpanExporter())


# --- requests ------------------------------------------------------------------------------------


def span_of_request(get_response: Handler) -> Handler:
    """A span for each request, named by its route: an address may hold what lets somebody in."""
    if traces.used() is None:
        raise MiddlewareNotUsed

    def answer(request: HttpRequest) -> HttpResponseBase:
        method = request.method if request.method in _METHODS else "_OTHER"
        facts = {"http.request.method": method}
        given = request.headers.get(_HEADER, "")
        with traces.span(str(method), parent=given, kind="server", **facts) as span:
            response = get_response(request)
            if request.resolver_match is not None:
                route = f"/{request.resolver_match.route}"
                span.call(f"{method} {route}")
                span.note(**{"http.route": route})
            span.note(**{"http.response.status_code": response.status_code})
            if response.status_code >= 500:
                span.fail(str(response.status_code))
            return response

    return answer


_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}
)


# --- messages ------------------------------------------------------------------------------------

_running: dict[str, tuple[ExitStack, traces.Span]] = {}


def _listen() -> None:
    """Take the trace along in every message, and go on with it where the message arrives."""
    signals.before_task_publish.connect(_publish, weak=False, dispatch_uid="obversa.traces")
    signals.task_prerun.connect(_started, weak=False, dispatch_uid="obversa.traces")
    signals.task_postrun.connect(_ended, weak=False, dispatch_uid="obversa.traces")
    signals.worker_process_shutdown.connect(_flush, weak=False, dispatch_uid="obversa.traces")
    signals.worker_shutdown.connect(_flush, weak=False, dispatch_uid="obversa.traces")


def _publish(headers: dict[str, Any] | None = None, **_: Any) -> None:
    if headers is not None and (here := traces.here()):
        headers[_HEADER] = here


def _started(task_id: str = "", task: Any = None, **_: Any) -> None:
    if traces.used() is None:
        return
    request = task.request
    given = getattr(request, _HEADER, None) or (request.headers or {}).get(_HEADER)
    facts = {"messaging.system": "celery", "messaging.message.id": task_id}
    running = ExitStack()
    span = running.enter_context(
        traces.span(task.name, parent=str(given or ""), kind="consumer", **facts)
    )
    _running[task_id] = running, span


def _ended(task_id: str = "", state: str | None = None, **_: Any) -> None:
    running, span = _running.pop(task_id, (None, None))
    if running is None or span is None:
        return
    if state == "FAILURE":
        span.fail(state)
    running.close()


def _flush(**_: Any) -> None:
    spans = traces.used()
    if isinstance(spans, Spans):
        spans.provider.force_flush(FLUSH_MS)
