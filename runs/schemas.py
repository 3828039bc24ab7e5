"""Shapes of the API: what is read from a body, and what an answer looks like."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from runs.publishing import MAX_PRIORITY
from runs.replies import DEFAULT_LIMIT, MAX_LIMIT

NO_NUL: Final = r"^[^\x00]*$"
# PostgreSQL stores no U+0000, and nobody searches for it.
Text = Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
Reason = Annotated[str, StringConstraints(max_length=2000, pattern=NO_NUL)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="How many at most.", examples=[50])]
Seq = Annotated[int, Field(ge=0, le=2**63 - 1, description="The number of an event.")]
Json = Any


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 1.0 is the integer 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Stands behind the bounds of a StrictInt: before them they would not be described.
WHOLE: Final = BeforeValidator(_whole)
RunStatus = Literal[
    "queued",
    "running",
    "waiting",
    "retry_pending",
    "paused",
    "passed",
    "failed",
    "exhausted",
    "cancelled",
]

EXAMPLE_RUN: Final = "8f14e45f-ceea-467f-9b1c-2d3e4f5a6b7c"
EXAMPLE_TIME: Final = "2026-01-01T09:30:00.000Z"


class Body(BaseModel):
    """What a caller sends. A field nobody knows is refused: it would be a wish unheard."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", populate_by_name=False)


class Shape(BaseModel):
    """What a caller gets. More fields may come, none is renamed."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow")


class StartRun(Body):
    """A workflow and its parameters."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "workflow": "release",
                    "params": {"version": "1.4.0"},
                    "labels": {"team": "platform"},
                }
            ]
        }
    )

    workflow: Name = Field(description="The name of the workflow in the catalogue.")
    params: dict[str, Json] = Field(
        default_factory=dict, description="What its JSON Schema `params` asks for."
    )
    labels: dict[Name, Text] = Field(
        default_factory=dict, max_length=50, description="Names of your own, for finding it again."
    )
    conversation: Text = Field(
        default="", description="What the run belongs to; an action may be allowed for all of it."
    )
    dry_run: bool = Field(
        default=False, description="Call no tool that changes anything; record what it would do."
    )
    priority: Annotated[StrictInt, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY), WHOLE] | None = Field(
        default=None,
        description="Higher goes first. Above its workflow's own it is for who operates all runs.",
    )


class CancelRun(Body):
    """Why the run is cancelled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "wrong branch"}]})

    reason: Reason = Field(default="", description="Stands in the record.")


class RerunRun(Body):
    """What of the old run is taken over."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"fromStep": "build"}]})

    from_step: str | None = Field(
        default=None,
        max_length=300,
        description="The step of the outermost graph to begin with; what passed before it is kept.",
    )
    keep_answers: bool = Field(
        default=True,
        description="Whether answers count once more where the same question is asked again.",
    )


class Progress(Shape):
    """How many of the steps have ended."""

    done: int
    total: int


class QueuePlace(Shape):
    """A line for the places of a workflow or a team, of which `limit` are taken at once."""

    kind: Literal["workflow", "team"]
    name: str
    limit: int
    position: int


class ArchiveFile(Shape):
    """Where the record of an archived run is."""

    file: str
    digest: str
    size: int


class RunShape(Shape):
    """One execution of a workflow, or the stream of questions of an outside program."""

    model_config = ConfigDict(
        title="Run",
        json_schema_extra={
            "examples": [
                {
                    "id": EXAMPLE_RUN,
                    "workflow": "release",
                    "title": "Release",
                    "kind": "workflow",
                    "status": "waiting",
                    "displayStatus": "waiting_for_gate",
                    "waitingOn": ["gate"],
                    "heldReason": "",
                    "outcome": None,
                    "overridden": False,
                    "params": {"version": "1.4.0"},
                    "labels": {"team": "platform"},
                    "stream": "",
                    "conversation": "",
                    "startedBy": "user:7",
                    "rerunOf": None,
                    "priority": 0,
                    "queuePosition": None,
                    "queuedFor": [],
                    "progress": {"done": 3, "total": 6},
                    "lastSeq": 19,
                    "createdAt": EXAMPLE_TIME,
                    "startedAt": EXAMPLE_TIME,
                    "endedAt": None,
                    "cancelRequestedAt": None,
                    "archivedAt": None,
                    "archive": None,
                    "url": f"https://obversa.example.com/runs/{EXAMPLE_RUN}/",
                }
            ]
        },
    )

    id: str
    workflow: str
    title: str
    kind: Literal["workflow", "external"]
    status: RunStatus
    display_status: str = Field(description="A waiting run says here for what.")
    overridden: bool = Field(description="Somebody answered in it who was not asked.")
    waiting_on: list[str]
    held_reason: str
    outcome: dict[str, Json] | None
    params: dict[str, Json]
    labels: dict[str, Json]
    stream: str
    conversation: str
    started_by: str
    rerun_of: str | None
    priority: int
    queue_position: int | None = Field(
        description="Of a queued run whose workflow or team has a limit: 1 is the next."
    )
    queued_for: list[QueuePlace] = Field(description="The full lines it is in, the longest first.")
    progress: Progress
    last_seq: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    cancel_requested_at: str | None
    archived_at: str | None = Field(
        description="Since when its record is a file in the archive; its events are not here then."
    )
    archive: ArchiveFile | None
    url: str


class EventShape(Shape):
    """A fact of the record; the fields of its kind stand beside these."""

    model_config = ConfigDict(
        title="Event",
        json_schema_extra={
            "examples": [
                {
                    "seq": 4,
                    "kind": "dag:node",
                    "path": ["release"],
                    "ts": EXAMPLE_TIME,
                    "actor": "system",
                    "surface": "worker",
                    "node": "build",
                    "phase": "start",
                    "attempt": 1,
                }
            ]
        },
    )

    seq: int
    kind: str
    path: list[str]
    ts: str
    actor: str
    surface: str


class Events(Shape):
    """Events in order, and the number of the newest one there is."""

    items: list[EventShape]
    head: int


# One server-sent event of a stream.
STREAMED: Final = {
    "type": "object",
    "required": ["id", "data"],
    "properties": {
        "id": {"type": "string", "description": "The number of the event."},
        "data": {
            "type": "string",
            "description": "The event as JSON.",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/EventShape"},
        },
    },
}


class WorkflowShape(Shape):
    """What can be started here."""

    model_config = ConfigDict(
        title="Workflow",
        json_schema_extra={
            "examples": [
                {
                    "name": "release",
                    "title": "Release",
                    "description": "Build, ask, publish.",
                    "params": {
                        "type": "object",
                        "properties": {"version": {"type": "string"}},
                        "required": ["version"],
                    },
                    "audience": {"groups": ["Release"]},
                }
            ]
        },
    )

    name: str
    title: str
    description: str
    params: dict[str, Json] = Field(description="A JSON Schema.")
    audience: dict[str, Json]
    error: str | None = Field(default=None, description="Why its file does not import.")


class RunPage(Shape):
    """Runs, newest first."""

    items: list[RunShape]
    next: str | None = Field(description="The cursor of the next page, null at the end.")


class WorkflowPage(Shape):
    """The catalogue by name."""

    items: list[WorkflowShape]
    next: str | None = Field(description="The cursor of the next page, null at the end.")


class Paging(BaseModel):
    """Which part of a list."""

    cursor: Text = Field(default="", description="The `next` of the page before.", examples=[""])
    limit: Limit = DEFAULT_LIMIT


class RunFilter(Paging):
    """Which runs."""

    status: list[RunStatus] = Field(
        default_factory=list, description="May be given more than once.", examples=[["waiting"]]
    )
    workflow: Text = Field(default="", description="The name of a workflow.", examples=["release"])
    archived: bool | None = Field(
        default=None, description="Only those in the archive, or only the others.", examples=[False]
    )
    q: Text = Field(
        default="",
        description="Part of a workflow, title or stream, or the beginning of an id.",
        examples=["rel"],
    )


class From(BaseModel):
    """Where in the record to begin."""

    after: Seq = Field(default=0, description="Only events with a greater number.", examples=[18])


class EventFilter(From):
    """Which events, and how long to wait for one."""

    limit: Limit = MAX_LIMIT
    wait: float = Field(
        default=0, ge=0, le=30, description="Seconds to wait for an event.", examples=[30]
    )


def _seen(value: Any) -> Any:
    """What is no number of an event says nothing: its sender begins where `after` says."""
    text = str(value)
    is_number = text.isascii() and text.isdecimal() and len(text) < 19
    return value if value is None or is_number else None


class LastSeen(BaseModel):
    """Where a client that comes back goes on."""

    last_seen: Annotated[Seq | None, BeforeValidator(_seen), WithJsonSchema({"type": "string"})] = (
        Field(
            default=None,
            alias="Last-Event-ID",
            description="The last event that was seen; browsers send it by themselves. What is no "
            "number says nothing.",
            examples=["18"],
        )
    )


class Idempotency(BaseModel):
    """One start, however often it is sent."""

    key: str = Field(
        default="",
        alias="Idempotency-Key",
        max_length=200,
        pattern=r"^[\x20-\x7e]*$",
        description="The same key starts one run, however often it is sent.",
        examples=["release-1.4.0"],
    )
