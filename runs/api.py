"""Runs and workflows over REST."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Header, Path, Query, Router

from runs import access, queries, reruns, services, wire
from runs.artifacts import downloads
from runs.errors import need_here
from runs.feeds import streams
from runs.models import Run, Workflow
from runs.replies import caller, moment_and_id, page_of, pages_of, place_of, reply
from runs.schemas import (
    EXAMPLE_RUN,
    STREAMED,
    CancelRun,
    EventFilter,
    Events,
    From,
    Idempotency,
    LastSeen,
    Paging,
    RerunRun,
    RunFilter,
    RunPage,
    RunShape,
    StartRun,
    WorkflowPage,
)

router = Router(tags=["Runs"], by_alias=True)

RunId = Annotated[UUID, Path(alias="id", description="The id of the run.", example=EXAMPLE_RUN)]
Digest = Annotated[
    str,
    Path(
        description="The digest of the file, as its event `artifact:stored` names it.",
        example="sha256:" + "0" * 64,
    ),
]


@router.get(
    "/workflows",
    tags=["Workflows"],
    operation_id="listWorkflows",
    summary="What can be started here",
    response=WorkflowPage,
    openapi_extra={"x-refusals": ["scope", "cursor"]},
)
def list_workflows(request: HttpRequest, paging: Query[Paging]) -> HttpResponse:
    """Every workflow the caller may see, by name."""
    rows = access.visible_workflows(caller(request, "read")).order_by("name")
    if paging.cursor:
        rows = rows.filter(name__gt=place_of(paging.cursor, 1)[0])
    return reply(page_of(rows, paging.limit, wire.workflow, _workflow_place))


def _workflow_place(row: Workflow) -> list[Any]:
    return [row.name]


@router.post(
    "/runs",
    operation_id="startRun",
    summary="Start a workflow",
    response={201: RunShape},
    openapi_extra={
        "x-refusals": [
            "scope",
            "forbidden",
            "not-found",
            "workflow-unknown",
            "workflow-broken",
            "params",
            "idempotency-conflict",
            "too-many-open",
        ]
    },
)
def start_run(
    request: HttpRequest, payload: StartRun, headers: Header[Idempotency]
) -> HttpResponse:
    """Start it and answer at once; a worker does the steps.

    With an `Idempotency-Key` the same request again gives the same run, and another request under
    that key is refused.
    """
    who = caller(request, "start")
    workflow = access.startable_or_404(who, payload.workflow)
    access.need_priority(who, workflow, payload.priority)
    run = services.start_run(
        workflow.name,
        payload.params,
        actor=who.actor,
        surface=who.surface,
        labels=payload.labels,
        conversation=payload.conversation,
        dry_run=payload.dry_run,
        priority=payload.priority,
        idempotency_key=headers.key,
    )
    return reply(wire.run(run), 201)


@router.get(
    "/runs",
    operation_id="listRuns",
    summary="Runs, newest first",
    response=RunPage,
    openapi_extra={"x-refusals": ["scope", "cursor"]},
)
def list_runs(request: HttpRequest, wanted: Query[RunFilter]) -> HttpResponse:
    """The runs the caller may see."""
    rows = access.visible_runs(caller(request, "read")).filter(_asked_for(wanted))
    rows = rows.order_by("-created_at", "-pk")
    return reply(pages_of(rows, wanted.limit, wire.runs, _run_place))


def _run_place(row: Run) -> list[Any]:
    return [row.created_at.isoformat(), str(row.pk)]


def _asked_for(wanted: RunFilter) -> Q:
    found = Q()
    if wanted.status:
        found &= Q(status__in=wanted.status)
    if wanted.workflow:
        found &= Q(workflow=wanted.workflow)
    if wanted.archived is not None:
        found &= Q(archived_at__isnull=not wanted.archived)
    if q := wanted.q.strip():
        match = Q(workflow__icontains=q) | Q(title__icontains=q) | Q(stream__icontains=q)
        found &= match | queries.id_range(q) if queries.is_id_prefix(q) else match
    if wanted.cursor:
        at, key = moment_and_id(wanted.cursor)
        found &= Q(created_at__lt=at) | Q(created_at=at, pk__lt=key)
    return found


@router.get(
    "/runs/{uuid:id}",
    operation_id="getRun",
    summary="One run",
    response=RunShape,
    openapi_extra={"x-refusals": ["scope", "not-found"]},
)
def get_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Where the run stands."""
    return reply(wire.run(access.run_or_404(caller(request, "read"), run_id)))


@router.get(
    "/runs/{uuid:id}/events",
    operation_id="listEvents",
    summary="The record, from a number on",
    response=Events,
    openapi_extra={"x-refusals": ["scope", "not-found"]},
)
async def list_events(
    request: HttpRequest, run_id: RunId, wanted: Query[EventFilter]
) -> HttpResponseBase:
    """Events in order.

    With `wait` the answer comes with the first event after that number, and without one when the
    time is over or the run has ended.
    """
    who = caller(request, "read")
    await sync_to_async(access.run_or_404)(who, run_id)
    return await streams.events_answer(
        request, run_id, wanted.after, wanted.limit, wanted.wait, who.actor
    )


@router.get(
    "/runs/{uuid:id}/stream",
    operation_id="streamEvents",
    summary="The record, live",
    openapi_extra={
        "x-refusals": ["scope", "not-found"],
        "responses": {
            200: {
                "description": "Server-sent events; `id` is the number, `data` the event.",
                "content": {
                    "text/event-stream": {
                        "schema": STREAMED,  # of each event, as OpenAPI before 3.2 has it
                        "example": {"id": "4", "data": '{"seq":4,"kind":"log","path":[]}'},
                    }
                },
            }
        },
    },
)
async def stream_events(
    request: HttpRequest, run_id: RunId, wanted: Query[From], headers: Header[LastSeen]
) -> HttpResponseBase:
    """Every event after a number as it is recorded; the stream ends when the run has ended.

    After a quarter of an hour the stream is cut; a client goes on with `Last-Event-ID`.
    """
    who = caller(request, "read")
    need_here(await sync_to_async(access.run_or_404)(who, run_id))
    after = wanted.after if headers.last_seen is None else headers.last_seen
    return streams.stream_answer(request, run_id, after, who.actor)


@router.get(
    "/runs/{uuid:id}/artifacts/{digest}",
    operation_id="getArtifact",
    summary="A file of the run",
    openapi_extra={
        "x-refusals": [
            "scope",
            "not-found",
            "artifact-missing",
            "artifact-changed",
            "range-beyond",
        ],
        "responses": {
            200: {
                "description": "The bytes, with the media type they were stored under.",
                "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
            },
            206: {
                "description": "The part of them that `Range` asks for.",
                "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
            },
            304: {"description": "The caller has them: `If-None-Match` names their digest."},
        },
    },
)
def get_artifact(request: HttpRequest, run_id: RunId, digest: Digest) -> HttpResponseBase:
    """The file as a download; a browser never shows it as a page of this site."""
    run = access.run_or_404(caller(request, "read"), run_id)
    row = run.artifacts.filter(digest=digest.replace("\0", "")).order_by("-seq").first()
    if row is None:
        raise access.NotVisible(f"Run {run.short} has no file {digest!r}.")
    return downloads.answer(request, row)


@router.post(
    "/runs/{uuid:id}/cancel",
    operation_id="cancelRun",
    summary="Stop a run",
    response=RunShape,
    openapi_extra={"x-refusals": ["scope", "forbidden", "not-found", "ended"]},
)
def cancel_run(
    request: HttpRequest, run_id: RunId, payload: CancelRun | None = None
) -> HttpResponse:
    """Nothing new starts, running steps are told, open questions are kept."""
    who = caller(request, "operate")
    access.need_operate(who, access.run_or_404(who, run_id))
    reason = payload.reason if payload else ""
    run = services.cancel_run(run_id, actor=who.actor, surface=who.surface, reason=reason)
    return reply(wire.run(run))


@router.post(
    "/runs/{uuid:id}/resume",
    operation_id="resumeRun",
    summary="Go on with a stopped run",
    response=RunShape,
    openapi_extra={"x-refusals": ["scope", "forbidden", "not-found", "not-paused"]},
)
def resume_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """What has passed is not repeated; a question that was answered meanwhile counts."""
    who = caller(request, "operate")
    access.need_operate(who, access.run_or_404(who, run_id))
    return reply(wire.run(services.resume_run(run_id, actor=who.actor, surface=who.surface)))


@router.post(
    "/runs/{uuid:id}/retry",
    operation_id="retryRun",
    summary="Try at once what waits for its next try",
    response=RunShape,
    openapi_extra={"x-refusals": ["scope", "forbidden", "not-found", "not-retrying"]},
)
def retry_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """The wait ends now; the attempts that are left stay the same."""
    who = caller(request, "operate")
    access.need_operate(who, access.run_or_404(who, run_id))
    return reply(wire.run(services.retry_now(run_id, actor=who.actor, surface=who.surface)))


@router.post(
    "/runs/{uuid:id}/rerun",
    operation_id="rerunRun",
    summary="Run a finished run again",
    response={201: RunShape},
    openapi_extra={
        "x-refusals": ["scope", "forbidden", "not-found", "not-over", "params", "too-many-open"]
    },
)
def rerun_run(request: HttpRequest, run_id: RunId, payload: RerunRun | None = None) -> HttpResponse:
    """A new run with the same parameters, whole or from a step of the outermost graph.

    Answers count once more where the same question is asked again.
    """
    who = caller(request, "start")
    found = access.run_or_404(who, run_id)
    access.startable_or_404(who, found.workflow)
    given = payload or RerunRun()
    made = reruns.rerun(
        found.pk,
        actor=who.actor,
        surface=who.surface,
        from_step=given.from_step,
        keep_answers=given.keep_answers,
    )
    return reply(wire.run(made), status=201)
