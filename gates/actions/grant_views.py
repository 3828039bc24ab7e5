"""Standing grants as a page and over REST: what runs without asking, and the end of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from ninja import Path, Query, Router
from pydantic import ConfigDict

from gates import access
from gates.actions import grants
from gates.models import Grant, Request
from gates.principals import Principal
from runs import wire
from runs.access import visible_runs
from runs.people.actors import actor_labels
from runs.people.visitors import caller as person
from runs.plaintext import visible
from runs.replies import caller, cursor_of, moment_and_id, page_of, reply
from runs.schemas import EXAMPLE_TIME, Paging, Shape

router = Router(tags=["Grants"], by_alias=True)
PAGE: Final = 50
_EXAMPLE: Final = "6f1c0e8b-8f0b-5c57-9d3d-6a7c1b2d3e4f"
GrantKey = Annotated[UUID, Path(alias="id", description="The `id` of the grant.", example=_EXAMPLE)]


class GrantShape(Shape):
    """A yes that holds for later calls of a tool."""

    model_config = ConfigDict(
        title="Grant",
        json_schema_extra={
            "examples": [
                {
                    "id": _EXAMPLE,
                    "scope": "conversation",
                    "matchType": "tool",
                    "matchValue": "publish_post",
                    "principal": "user:7",
                    "conversation": "c1",
                    "grantedBy": "user:9",
                    "sourceRequestId": "action:publish_post:…",
                    "runId": "8f14e45f-ceea-467f-9b1c-2d3e4f5a6b7c",
                    "policyVersion": "4f53cda18c2b",
                    "grantedAt": EXAMPLE_TIME,
                    "expiresAt": EXAMPLE_TIME,
                    "revokedAt": None,
                    "revokedBy": None,
                    "active": True,
                    "rule": "Every call of publish_post in the conversation c1 …",
                }
            ]
        },
    )

    id: str
    scope: str
    match_type: str
    match_value: str
    principal: str | None
    conversation: str | None
    granted_by: str
    source_request_id: str
    run_id: str
    policy_version: str
    granted_at: str
    expires_at: str | None
    revoked_at: str | None
    revoked_by: str | None
    active: bool
    rule: str


class GrantPage(Shape):
    """Grants, newest first."""

    items: list[GrantShape]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class GrantRow:
    """One grant as the page shows it; texts are a stranger's."""

    id: UUID
    rule: str
    tool: str
    granted_by: str
    granted_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str
    is_active: bool
    question_url: str
    run_url: str


def rule_of(grant: Grant, starter: str) -> str:
    """The literal rule that the grant is."""
    what = f"Every call of {visible(grant.match_value)}"
    if grant.match_type == Grant.MatchType.CATEGORY:
        what = f"Every call of a tool of the kind {visible(grant.match_value)}"
    if grant.scope == Grant.Scope.CONVERSATION:
        where = f" in the conversation {visible(grant.conversation)}"
        where += f", in runs that {visible(starter)} started," if grant.principal else ""
    elif grant.scope == Grant.Scope.PRINCIPAL:
        where = f" in every run that {visible(starter)} starts"
    else:
        where = " in every run"
    return f"{what}{where} runs without asking, whatever its input."


def _is_active(grant: Grant) -> bool:
    now = timezone.now()
    return grant.revoked_at is None and (grant.expires_at is None or grant.expires_at > now)


# --- the page ------------------------------------------------------------------------------------


@never_cache
@login_required
@require_GET
def grant_list(request: HttpRequest) -> HttpResponse:
    """Show what may run unasked for this person, or by their word; operators see all."""
    who = person(request)
    rows = list(_after(grants.visible(who), request.GET.get("cursor", ""))[: PAGE + 1])
    following = ""
    if len(rows) > PAGE:
        following = f"{reverse('gates:grant-list')}?cursor={cursor_of(_place(rows[PAGE - 1]))}"
    told = {
        "grants": _rows(who, rows[:PAGE]),
        "next_url": following,
        "sees_all": access.may_operate(who),
    }
    return render(request, "gates/grants.html", told)


@login_required
@require_POST
def grant_revoke(request: HttpRequest, pk: UUID) -> HttpResponse:
    """End a grant; the next call asks again."""
    grants.revoke(pk, principal=person(request))
    return redirect("gates:grant-list")


def _rows(who: Principal, found: list[Grant]) -> list[GrantRow]:
    labels = actor_labels(
        actor for grant in found for actor in (grant.principal, grant.granted_by, grant.revoked_by)
    )
    questions = _questions(who, found)
    seen = set(
        visible_runs(who).filter(pk__in={one.run_id for one in found}).values_list("pk", flat=True)
    )
    return [
        GrantRow(
            id=grant.pk,
            rule=rule_of(grant, labels.get(grant.principal, "")),
            tool=visible(grant.match_value),
            granted_by=labels[grant.granted_by],
            granted_at=grant.granted_at,
            expires_at=grant.expires_at,
            revoked_at=grant.revoked_at,
            revoked_by=labels[grant.revoked_by] if grant.revoked_by else "",
            is_active=_is_active(grant),
            question_url=questions.get((grant.run_id, grant.source_request_id), ""),
            run_url=grant.run.get_absolute_url() if grant.run_id in seen else "",
        )
        for grant in found
    ]


def _questions(who: Principal, found: list[Grant]) -> Mapping[tuple[UUID, str], str]:
    """Where each grant was given, for those who may see that question."""
    named = {grant.source_request_id for grant in found}
    rows = access.visible_requests(who).filter(
        request_id__in=named, run__in={grant.run_id for grant in found}
    )
    return {
        (run_id, request_id): Request(pk=pk).get_absolute_url()
        for pk, run_id, request_id in rows.values_list("pk", "run_id", "request_id").distinct()
    }


# --- REST ----------------------------------------------------------------------------------------


@router.get(
    "/grants",
    operation_id="listGrants",
    summary="Standing grants, newest first",
    response=GrantPage,
    openapi_extra={"x-refusals": ["scope", "cursor"]},
)
def list_grants(request: HttpRequest, paging: Query[Paging]) -> HttpResponse:
    """Those for the caller's runs and those it gave; operators see all. Ended ones too."""
    rows = _after(grants.visible(caller(request, "read")), paging.cursor)
    return reply(page_of(rows, paging.limit, _wire, _place))


@router.post(
    "/grants/{uuid:id}/revoke",
    operation_id="revokeGrant",
    summary="End a standing grant",
    response=GrantShape,
    openapi_extra={"x-refusals": ["scope", "forbidden", "not-found"]},
)
def revoke_grant(request: HttpRequest, key: GrantKey) -> HttpResponse:
    """The next call asks again; what is under way is not stopped. Twice, the first time counts."""
    # A decision is taken back by who may decide, or by who may operate: never by who only reads.
    may_operate = request.auth.has_scope("operate")  # type: ignore[attr-defined]  # ninja puts it there
    who = caller(request, "operate" if may_operate else "answer")
    return reply(_wire(grants.revoke(key, principal=who)))


def _after(rows: Any, cursor: str) -> Any:
    if not cursor:
        return rows
    at, key = moment_and_id(cursor)
    return rows.filter(Q(granted_at__lt=at) | Q(granted_at=at, pk__lt=key))


def _place(grant: Grant) -> list[Any]:
    return [grant.granted_at.isoformat(), str(grant.pk)]


def _wire(grant: Grant) -> dict[str, Any]:
    return {
        "id": str(grant.pk),
        "scope": grant.scope,
        "matchType": grant.match_type,
        "matchValue": grant.match_value,
        "principal": grant.principal or None,
        "conversation": grant.conversation or None,
        "grantedBy": grant.granted_by,
        "sourceRequestId": grant.source_request_id,
        "runId": str(grant.run_id),
        "policyVersion": grant.policy_version,
        "grantedAt": wire.time(grant.granted_at),
        "expiresAt": wire.time(grant.expires_at),
        "revokedAt": wire.time(grant.revoked_at),
        "revokedBy": grant.revoked_by or None,
        "active": _is_active(grant),
        "rule": rule_of(grant, grant.principal),
    }
