"""Questions, keys and teams for the people who look after this installation: facts, two rescues."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

import gates.notify.admin
import gates.routers.admin  # noqa: F401  registers its own tables
from gates import keys, services
from gates.errors import GateError, ReasonMissing
from gates.evidence.masking import masked_input
from gates.models import ApiKey, Deputy, Grant, Request, Response, Team
from gates.pages.timeline import timeline
from runs.access import Forbidden, NotVisible
from runs.admin import ReadOnly
from runs.inputs.formfields import pretty
from runs.models import Run
from runs.people.principals import Principal
from runs.plaintext import visible
from runs.queries import id_range, is_id_prefix


class ResponseInline(ReadOnly, admin.TabularInline[Response, Request]):
    model = Response
    fields = ["seq", "at", "actor", "deputy_for", "overrides", "surface", "response"]
    extra = 0


@admin.register(Request)
class RequestAdmin(ReadOnly, admin.ModelAdmin[Request]):
    list_display = [
        "fingerprint", "gate_id", "question", "status", "holder", "run", "created_at",
        "answered_by",
    ]  # fmt: skip
    list_filter = ["status", "how", "kind"]
    list_select_related = ["run"]
    search_fields = ["gate_id"]
    search_help_text = "the start of a fingerprint, a gate's id, or the start of a run's id"
    date_hierarchy = "created_at"
    inlines = [ResponseInline]
    actions = ["force_release"]
    show_full_result_count = False
    fields = [
        "question", "status", "holder", "claimed_at", "story", "digest", "gate_id", "gate_version",
        "request_id", "run", "step_path", "kind", "audience", "asked_by", "created_at", "due_at",
        "expires_at", "answered_at", "answered_by", "how", "needed", "superseded_by",
        "closed_reason", "about", "response_schema", "presentation", "routing",
    ]  # fmt: skip
    readonly_fields = ["question", "story", "about"]

    @admin.display(description="question")
    def question(self, row: Request) -> str:
        text = visible(row.decision_text)
        return text if len(text) <= 200 else f"{text[:199]}…"

    @admin.display(description="input")
    def about(self, row: Request) -> str:
        """Masked for everybody: who may read all of it does so on the question's page."""
        return pretty(masked_input(row))

    @admin.display(description="events")
    def story(self, row: Request) -> SafeString:
        """What the record says of this question, oldest first."""
        lines = (
            (event.seq, event.at.isoformat(" ", "seconds"), event.kind, event.actor_label,
             event.surface, event.note)
            for event in timeline(row)
        )  # fmt: skip
        return format_html("<ol>{}</ol>", format_html_join("", _EVENT, lines))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Request], search_term: str
    ) -> tuple[QuerySet[Request], bool]:
        term = search_term.strip().lower()
        if not is_id_prefix(term):
            return super().get_search_results(request, queryset, search_term)
        runs = Run.objects.filter(id_range(term)).values("pk")
        found = Q(digest__startswith=term) | Q(run__in=runs) | Q(gate_id__icontains=search_term)
        return queryset.filter(found), False

    def has_rescue_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("gates.change_request")

    @admin.action(
        description="Force release: take the claim from its holder", permissions=["rescue"]
    )
    def force_release(
        self, request: HttpRequest, queryset: QuerySet[Request]
    ) -> HttpResponse | None:
        """Ask for the reason first, then release; each one is recorded with the person's name."""
        chosen = list(queryset.filter(status=Request.Status.CLAIMED).order_by("created_at"))
        if not chosen:
            self.message_user(request, "None of these is claimed.", messages.WARNING)
            return None
        reason = request.POST.get("reason", "")
        if "confirmed" not in request.POST:
            return self._ask(request, chosen, reason)
        who = Principal.for_user(request.user, "admin")
        try:
            for row in chosen:
                self._release(request, row, who, reason)
        except ReasonMissing as missing:
            return self._ask(request, chosen, reason, str(missing))
        return None

    def _release(self, request: HttpRequest, row: Request, who: Principal, reason: str) -> None:
        try:
            services.force_release(row.pk, principal=who, reason=reason)
        except ReasonMissing:
            raise
        except (GateError, Forbidden, NotVisible) as refusal:
            self.message_user(request, f"{row}: {refusal}", messages.ERROR)
        else:
            self.message_user(request, f"{row} is free again.", messages.SUCCESS)

    def _ask(
        self, request: HttpRequest, chosen: list[Request], reason: str, error: str = ""
    ) -> HttpResponse:
        page = {
            **self.admin_site.each_context(request),
            "title": "Force release",
            "chosen": chosen,
            "reason": reason,
            "error": error,
            "opts": self.model._meta,
            "checkbox_name": ACTION_CHECKBOX_NAME,
        }
        status = 422 if error else 200
        return TemplateResponse(request, "admin/gates/force_release.html", page, status=status)


_EVENT = "<li>{} {} <b>{}</b> {} {} {}</li>"


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnly, admin.ModelAdmin[ApiKey]):
    list_display = ["name", "shown", "user", "scopes", "created_at", "last_used_at", "ends"]
    list_select_related = ["user"]
    search_fields = ["name", "prefix", "user__username"]
    fields = [
        "name", "shown", "scopes", "user", "created_at", "expires_at", "last_used_at", "revoked_at",
    ]  # fmt: skip
    readonly_fields = ["shown"]
    actions = ["revoke"]

    @admin.display(description="starts with")
    def shown(self, key: ApiKey) -> str:
        return f"obv_{key.prefix}"

    @admin.display(description="ends")
    def ends(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return "revoked"
        return f"{key.expires_at:%Y-%m-%d}" if key.expires_at is not None else "never"

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("gates.change_apikey")

    @admin.action(description="Revoke these keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        ended = sum(keys.revoke(key) for key in queryset)
        self.message_user(request, f"{ended} keys revoked.", messages.SUCCESS)


@admin.register(Deputy)
class DeputyAdmin(admin.ModelAdmin[Deputy]):
    """Who answers for whom; people name their deputies themselves, and here it can be ended."""

    list_display = ["person", "deputy", "until"]
    list_select_related = ["person", "deputy"]
    search_fields = ["person__username", "deputy__username"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin[Team]):
    list_display = ["group", "description"]
    list_select_related = ["group"]
    search_fields = ["group__name"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """A team stays the team of its group."""
        return [] if obj is None else ["group"]


@admin.register(Grant)
class GrantAdmin(ReadOnly, admin.ModelAdmin[Grant]):
    list_display = [
        "match_value", "scope", "conversation", "principal", "granted_by", "granted_at",
        "expires_at", "revoked_at",
    ]  # fmt: skip
    list_filter = ["scope", "match_type"]
    search_fields = ["match_value", "principal", "conversation"]
    date_hierarchy = "granted_at"
    show_full_result_count = False
