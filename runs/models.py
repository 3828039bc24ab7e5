"""The tables of runs. `Event` is the truth; every other row is a copy for lists and constraints."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, NoReturn

from django.db import models
from django.db.models import Q
from django.urls import reverse

from runs.fields import JSONText
from runs.turns import lines, repairs  # noqa: F401  their tables are of this app
from runs.turns.whole import AppendOnly


class Audience(models.Model):
    """A set of people, named by tokens such as `everyone`, `user:ada` or `group:Release`."""

    key = models.CharField(max_length=64, unique=True)
    spec = JSONText(default=dict)

    def __str__(self) -> str:
        return ", ".join(self.tokens.values_list("token", flat=True)) or self.key


class AudienceToken(models.Model):
    """One member of an audience; what a person's own tokens are compared with."""

    audience = models.ForeignKey(Audience, models.CASCADE, related_name="tokens")
    token = models.CharField(max_length=200, db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["audience", "token"], name="audience_names_a_token_once"
            )
        ]

    def __str__(self) -> str:
        return self.token


class Definition(models.Model):
    """A compiled workflow as data, addressed by its digest."""

    digest = models.CharField(max_length=64, primary_key=True)
    identity = models.CharField(max_length=64)
    shape = JSONText()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.digest[:12]


class Workflow(models.Model):
    """What may be started here; workers keep this catalogue."""

    name = models.CharField(max_length=200, primary_key=True)
    title = models.CharField(max_length=300)
    description = models.TextField(blank=True)
    params_schema = JSONText(default=dict)
    audience = models.ForeignKey(Audience, models.PROTECT, related_name="+")
    starters = models.ForeignKey(Audience, models.PROTECT, null=True, related_name="+")
    definition = models.ForeignKey(Definition, models.PROTECT, null=True, related_name="+")
    module = models.CharField(max_length=300, blank=True)
    priority = models.IntegerField(default=0, db_default=0)
    teams = JSONText(null=True, help_text="the groups that may start it, and so whose runs it has")
    error = models.TextField(blank=True)
    listed = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("runs:start", args=[self.name])


class Run(models.Model):
    """One execution of a workflow, or the stream of questions of an outside program."""

    class Kind(models.TextChoices):
        WORKFLOW = "workflow"
        EXTERNAL = "external"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting"
        RETRY_PENDING = "retry_pending"
        PAUSED = "paused"
        PASSED = "passed"
        FAILED = "failed"
        EXHAUSTED = "exhausted"
        CANCELLED = "cancelled"

    FINAL: ClassVar = frozenset({Status.PASSED, Status.FAILED, Status.EXHAUSTED, Status.CANCELLED})

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workflow = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=300, blank=True)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.WORKFLOW)
    definition = models.ForeignKey(Definition, models.PROTECT, null=True, related_name="+")
    audience = models.ForeignKey(Audience, models.PROTECT, related_name="+")
    params = JSONText(default=dict)
    status = models.CharField(max_length=15, choices=Status.choices, default=Status.QUEUED)
    outcome = JSONText(null=True)
    labels = JSONText(default=dict)
    stream = models.CharField(max_length=200, blank=True)
    conversation = models.CharField(max_length=200, blank=True)
    started_by = models.CharField(max_length=200)
    rerun_of = models.ForeignKey("self", models.PROTECT, null=True, related_name="reruns")
    idempotency_key = models.CharField(max_length=300, blank=True)
    last_seq = models.PositiveBigIntegerField(default=0)
    head = models.CharField(max_length=64, blank=True, help_text="the hash of the last event")
    seal = models.CharField(max_length=64, blank=True, help_text="of the head, with our key")
    done_count = models.PositiveIntegerField(default=0)
    total_count = models.PositiveIntegerField(default=0)
    waiting_on = JSONText(default=list)
    overridden = models.BooleanField(
        default=False, help_text="a question was answered by somebody who was not asked"
    )
    held_reason = models.TextField(blank=True)
    priority = models.IntegerField(default=0, db_default=0)
    admission = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text="where it stands under a limit of runs (runs/turns/admission.py)",
    )
    wake_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField()
    # Its record lies in the archive then, and no longer here (runs/archive/archiving.py).
    archived_at = models.DateTimeField(null=True)
    archive_digest = models.CharField(max_length=71, blank=True, default="", db_default="")
    archive_size = models.PositiveBigIntegerField(null=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["started_by", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="run_start_once_per_idempotency_key",
            ),
            models.UniqueConstraint(
                fields=["stream"], condition=Q(kind="external"), name="run_one_per_stream"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True)
                | Q(status__in=["passed", "failed", "exhausted", "cancelled"]),
                name="run_end_matches_status",
            ),
            models.CheckConstraint(
                condition=Q(archived_at__isnull=True, archive_digest="", archive_size__isnull=True)
                | Q(
                    archived_at__isnull=False,
                    archive_size__isnull=False,
                    ended_at__isnull=False,
                )
                & ~Q(archive_digest=""),
                name="run_archive_is_whole",
            ),
            models.CheckConstraint(
                condition=Q(kind="external") | Q(definition__isnull=False),
                name="run_of_a_workflow_has_a_definition",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-created_at"], name="run_newest"),
            models.Index(fields=["status", "-created_at"], name="run_by_status"),
            models.Index(fields=["workflow", "-created_at"], name="run_by_workflow"),
            models.Index(fields=["started_by", "-created_at"], name="run_by_starter"),
            models.Index(
                fields=["started_by"], condition=Q(ended_at__isnull=True), name="run_under_way"
            ),
            models.Index(fields=["audience", "-created_at"], name="run_by_audience"),
            models.Index(fields=["wake_at"], condition=Q(wake_at__isnull=False), name="run_due"),
            # Not by `changed_at`: each turn of any run would write to every index of this table.
            models.Index(
                fields=["created_at"],
                condition=Q(ended_at__isnull=True) & ~Q(held_reason=""),
                name="run_on_hold",
            ),
            models.Index(
                fields=["ended_at", "id"],
                condition=Q(ended_at__isnull=False, archived_at__isnull=True),
                name="run_to_archive",
            ),
            models.Index(
                fields=["archive_digest"],
                condition=Q(archived_at__isnull=False),
                name="run_of_archive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow or self.stream} {self.short}"

    def get_absolute_url(self) -> str:
        return reverse("runs:run", args=[self.pk])

    @property
    def short(self) -> str:
        return str(self.pk)[:8]

    @property
    def is_final(self) -> bool:
        return self.status in self.FINAL

    @property
    def archive_name(self) -> str:
        """What people call the file of an archived run."""
        return f"run-{self.pk}.jsonl"

    @property
    def display_status(self) -> str:
        """The status in the words of the API: a waiting run says what it waits for."""
        if self.status == self.Status.WAITING and self.waiting_on:
            return f"waiting_for_{self.waiting_on[0]}"
        return str(self.status)


class Event(models.Model):
    """One fact of a run; `seq` has no gaps and is the commit order."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="events")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=60)
    path = JSONText(default=list)
    actor = models.CharField(max_length=200, default="system")
    surface = models.CharField(max_length=20, blank=True)
    at = models.DateTimeField()
    key = models.CharField(max_length=300, blank=True)
    payload = JSONText(default=dict)
    # Nothing for events of before there were hashes: they are never touched again.
    hash = models.CharField(max_length=64, null=True)

    objects = AppendOnly.as_manager()

    class Meta:
        ordering: ClassVar = ["run", "seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="event_seq_once_per_run"),
            models.UniqueConstraint(
                fields=["run", "key"], condition=~Q(key=""), name="event_key_once_per_run"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("Events are append only.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("Events are append only.")


class Step(models.Model):
    """A place of the graph as lists and pictures show it; a projection of the record."""

    class Status(models.TextChoices):
        IDLE = "idle"
        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting"
        PASSED = "passed"
        FAILED = "failed"
        SKIPPED = "skipped"
        CANCELLED = "cancelled"
        EXHAUSTED = "exhausted"
        SENT_BACK = "sent_back"
        RETRY_PENDING = "retry_pending"

    run = models.ForeignKey(Run, models.CASCADE, related_name="steps")
    path = JSONText()
    parent = JSONText(default=list)
    name = models.CharField(max_length=300)
    kind = models.CharField(max_length=30)
    position = models.PositiveIntegerField()
    depth = models.PositiveIntegerField(default=0)
    needs = JSONText(default=list)
    desc = models.TextField(blank=True)
    gate = models.TextField(blank=True)
    status = models.CharField(max_length=15, choices=Status.choices, default=Status.IDLE)
    attempt = models.PositiveIntegerField(default=1)
    queued_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    summary = models.TextField(blank=True)
    outcome = JSONText(null=True)
    request_id = models.CharField(max_length=600, blank=True)
    sent_back_to = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "path"], name="step_once_per_path")
        ]

    def __str__(self) -> str:
        return self.name


class Attempt(models.Model):
    """One start of a step handed to a worker: its lease, and the fence its result must show."""

    class Status(models.TextChoices):
        READY = "ready"
        RUNNING = "running"
        DONE = "done"
        LOST = "lost"
        WITHDRAWN = "withdrawn"

    run = models.ForeignKey(Run, models.CASCADE, related_name="attempts")
    path = JSONText()
    task = models.CharField(max_length=10, default="job")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.READY)
    fence = models.CharField(max_length=32, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True)
    ready_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, help_text="none while it is held back")
    claimed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    trace = models.CharField(
        max_length=64, null=True, help_text="the traceparent of the turn that made it due"
    )

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "path", "task", "number"], name="attempt_once_per_start"
            ),
            models.CheckConstraint(
                condition=Q(status="running", lease_until__isnull=False) & ~Q(fence="")
                | ~Q(status="running"),
                name="attempt_runs_under_a_lease",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["sent_at"], condition=Q(status="ready"), name="attempt_ready"),
            models.Index(
                fields=["id"],
                condition=Q(status="ready", sent_at__isnull=True),
                name="attempt_held_back",
            ),
            models.Index(
                fields=["lease_until"], condition=Q(status="running"), name="attempt_leased"
            ),
        ]

    def __str__(self) -> str:
        return f"{'/'.join(self.path)} start {self.number}"


class Artifact(models.Model):
    """Bytes a run keeps, addressed by their digest."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="artifacts")
    digest = models.CharField(max_length=71)
    name = models.CharField(max_length=300)
    media_type = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    step_path = JSONText(default=list)
    seq = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="artifact_once_per_event")
        ]
        # Whether anybody names these bytes is asked before any are cleaned away.
        indexes: ClassVar = [models.Index(fields=["digest", "size"], name="artifact_by_digest")]

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """When a worker, a sweeper or a web process last showed that it lives."""

    name = models.CharField(max_length=200, primary_key=True)
    role = models.CharField(max_length=20)
    at = models.DateTimeField()
    facts = JSONText(null=True, help_text="what it says of itself: version, queues, sockets")

    def __str__(self) -> str:
        return self.name
