"""Records for the people who look after this installation: all rows read-only, one rescue."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest

from runs import queries, sweep
from runs.kernel.jsonable import canonical_json
from runs.kernel.masking import mask_requests
from runs.models import Artifact, Attempt, Event, Run, Step, Workflow

SHOWN = 200


class ReadOnly:
    """Rows are facts or copies of facts: the admin adds, changes and deletes none."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Facts:
    """What a record or an outcome holds, without what a question declares sensitive."""

    @admin.display(description="payload")
    def facts(self, row: Event) -> str:
        return canonical_json(mask_requests(row.payload))

    @admin.display(description="outcome")
    def result(self, row: Run | Step) -> str:
        return "" if row.outcome is None else canonical_json(mask_requests(row.outcome))


class LastRows(BaseInlineFormSet[Any, Any, Any]):
    """The newest rows only: a record may hold thousands."""

    newest = "-seq"

    def get_queryset(self) -> QuerySet[Any]:
        if not hasattr(self, "_last"):
            self._last = super().get_queryset().order_by(self.newest)[:SHOWN]
        return self._last


class LastAttempts(LastRows):
    newest = "-pk"


class EventInline(Facts, ReadOnly, admin.TabularInline[Event, Run]):
    model = Event
    formset = LastRows
    fields = ["seq", "at", "kind", "path", "actor", "surface", "facts"]
    readonly_fields = ["facts"]
    extra = 0
    verbose_name_plural = f"Events (the last {SHOWN})"


class AttemptInline(ReadOnly, admin.TabularInline[Attempt, Run]):
    model = Attempt
    formset = LastAttempts
    fields = ["path", "task", "number", "status", "worker", "lease_until", "claimed_at", "ended_at"]
    extra = 0
    verbose_name_plural = f"Attempts (the last {SHOWN})"


class ArtifactInline(ReadOnly, admin.TabularInline[Artifact, Run]):
    model = Artifact
    fields = ["name", "digest", "size", "media_type", "step_path", "created_at"]
    extra = 0


@admin.register(Run)
class RunAdmin(Facts, ReadOnly, admin.ModelAdmin[Run]):
    list_display = ["short", "name", "status", "progress", "started_by", "created_at", "ended_at"]
    list_filter = ["status", "kind", "workflow"]
    search_fields = ["workflow", "title", "stream", "started_by", "artifacts__digest"]
    search_help_text = "workflow, stream, who started it, the run's id or the digest of a file"
    date_hierarchy = "created_at"
    inlines = [EventInline, AttemptInline, ArtifactInline]
    actions = ["sweep_runs"]
    show_full_result_count = False
    exclude = ["outcome"]
    readonly_fields = [
        "result" if field.name == "outcome" else field.name for field in Run._meta.fields
    ]

    @admin.display(description="workflow")
    def name(self, run: Run) -> str:
        return run.workflow or run.stream

    @admin.display(description="steps")
    def progress(self, run: Run) -> str:
        return f"{run.done_count} of {run.total_count}" if run.total_count else ""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        found, doubled = super().get_search_results(request, queryset, search_term)
        if queries.is_id_prefix(search_term):
            found = found | queryset.filter(queries.id_range(search_term))
        return found, doubled

    def has_sweep_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("runs.change_run")

    @admin.action(description="Sweep: look at these runs anew", permissions=["sweep"])
    def sweep_runs(self, request: HttpRequest, queryset: QuerySet[Run]) -> None:
        moved = sum(sweep.rescue(run.pk, actor=f"user:{request.user.pk}") for run in queryset)
        self.message_user(
            request, f"{queryset.count()} runs swept, {moved} of them moved.", messages.SUCCESS
        )


@admin.register(Event)
class EventAdmin(Facts, ReadOnly, admin.ModelAdmin[Event]):
    exclude = ["payload"]
    readonly_fields = ["facts"]
    list_display = ["run", "seq", "kind", "actor", "surface", "at"]
    list_filter = ["kind", "surface"]
    search_fields = ["=actor", "=run__id"]
    search_help_text = "an actor such as user:7, or a run's whole id"
    list_select_related = ["run"]
    raw_id_fields = ["run"]
    show_full_result_count = False


@admin.register(Workflow)
class WorkflowAdmin(ReadOnly, admin.ModelAdmin[Workflow]):
    list_display = ["name", "title", "listed", "error", "updated_at"]
    list_filter = ["listed"]
    search_fields = ["name", "title", "definition__digest"]
    list_select_related = ["definition"]


@admin.register(Step)
class StepAdmin(Facts, ReadOnly, admin.ModelAdmin[Step]):
    exclude = ["outcome"]
    readonly_fields = ["result"]
    list_display = ["run", "name", "kind", "status", "attempt", "started_at", "ended_at"]
    list_filter = ["status", "kind"]
    list_select_related = ["run"]
    raw_id_fields = ["run"]
    show_full_result_count = False
