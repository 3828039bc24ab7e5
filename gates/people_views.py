"""Teams and their queues, and a person's own settings and keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.db.models import Avg, F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from gates import keys, queries, teams
from gates.access import NotVisible
from gates.errors import KeyRefused
from gates.models import ApiKey, Request
from gates.views import caller
from runs import words
from runs.audiences import audiences_with
from runs.plaintext import visible

SHOWN_MEMBERS = 8


@never_cache
@login_required
@require_GET
def team_list(request: HttpRequest) -> HttpResponse:
    """Show the reader's teams with what waits for each."""
    rows = teams.team_rows(caller(request))
    members = _members([row.id for row in rows])
    page = {
        "teams": [
            {
                "id": row.id,
                "url": reverse("gates:team", args=[row.id]),
                "name": visible(row.name),
                "members_text": members.get(row.id, "nobody yet"),
                "open_count": row.open_count,
                "unclaimed_count": row.unclaimed_count,
                "oldest_at": row.oldest_at,
            }
            for row in rows
        ],
        "groups_url": reverse("admin:auth_group_changelist")
        if request.user.has_perm("auth.view_group")
        else "",
    }
    return render(request, "gates/teams.html", page)


def _members(groups: list[int]) -> dict[int, str]:
    names: dict[int, list[str]] = {}
    found = Group.objects.filter(pk__in=groups, user__is_active=True).order_by("user__username")
    for group, first, last, username in found.values_list(
        "pk", "user__first_name", "user__last_name", "user__username"
    ):
        names.setdefault(group, []).append(f"{first} {last}".strip() or username)
    return {
        group: visible(", ".join(who[:SHOWN_MEMBERS]))
        + (f" and {len(who) - SHOWN_MEMBERS} more" if len(who) > SHOWN_MEMBERS else "")
        for group, who in names.items()
    }


@never_cache
@login_required
@require_GET
def team(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the open questions of one team, unclaimed first."""
    who = caller(request)
    group = get_object_or_404(Group, pk=pk)
    if group not in teams.visible_teams(who):
        raise NotVisible("There is no such team here.")
    found = queries.team_queue(group.name, principal=who, cursor=request.GET.get("cursor") or None)
    rows = sorted(found.rows, key=lambda row: row.claim_state != "free")
    page = {
        "team": {
            "name": visible(group.name),
            "members_text": _members([group.pk]).get(group.pk, "nobody yet"),
            **_usual_times(group),
        },
        "rows": rows,
        "next_url": f"{request.path}?cursor={found.next}" if found.next else None,
        "list_url": reverse("gates:inbox"),
    }
    return render(request, "gates/team.html", page)


def _usual_times(group: Group) -> dict[str, str]:
    """How long answers of this team took in the last thirty days."""
    audiences = audiences_with([f"group:{group.name}"])
    usual = Request.objects.filter(
        audience__in=audiences,
        status=Request.Status.ANSWERED,
        answered_at__gte=timezone.now() - timedelta(days=30),
    ).aggregate(answer=Avg(F("answered_at") - F("created_at")))
    answer = usual["answer"]
    return {"answer_time_text": words.span(answer.total_seconds()) if answer else ""}


class KeyForm(forms.Form):
    """What a new key is called and what it may do."""

    name = forms.CharField(
        label="Name", max_length=100, help_text="What uses it, for example deploy-bot."
    )
    scopes = forms.MultipleChoiceField(
        label="May",
        choices=[
            ("read", "read what you may see"),
            ("start", "start runs and ask questions"),
            ("claim", "claim questions"),
            ("answer", "answer questions"),
            ("operate", "cancel, resume and rescue"),
        ],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(
        label="Ends",
        coerce=int,
        required=False,
        empty_value=None,
        initial=keys.PERSONAL_DAYS,
        choices=[
            (7, "after a week"),
            (30, "after 30 days"),
            (keys.PERSONAL_DAYS, "after 90 days"),
            (365, "after a year"),
            (0, "never"),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, kind in (("name", "text"), ("scopes", "multi")):
            self.fields[name].widget_kind = kind  # type: ignore[attr-defined]  # read by a template


@never_cache
@login_required
@require_GET
def settings(request: HttpRequest) -> HttpResponse:
    """Show the reader's own keys and choices."""
    return _settings(request, KeyForm())


def _settings(
    request: HttpRequest, form: KeyForm, new: str = "", status: int = 200
) -> HttpResponse:
    mine = ApiKey.objects.filter(user=request.user.pk).order_by("revoked_at", "-created_at")
    page = {
        "new_key": new,
        "keys": [
            {
                "id": key.pk,
                "name": visible(key.name),
                "prefix": f"obv_{key.prefix}",
                "scopes_text": ", ".join(key.scopes),
                "created_at": key.created_at,
                "last_used_at": key.last_used_at,
                "expires_at": key.expires_at,
                "revoked_at": key.revoked_at,
            }
            for key in mine
        ],
        "form": form,
    }
    return render(request, "gates/settings.html", page, status=status)


@never_cache
@login_required
@require_POST
def key_create(request: HttpRequest) -> HttpResponse:
    """Make a key and show it this once."""
    form = KeyForm(request.POST)
    if form.is_valid():
        try:
            _, text = keys.create_key(
                form.cleaned_data["name"],
                form.cleaned_data["scopes"],
                user=caller(request).user,
                days=form.cleaned_data["days"],
            )
        except KeyRefused as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
        else:
            return _settings(request, KeyForm(), new=text)
    return _settings(request, form, status=422)


@login_required
@require_POST
def key_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of the reader's own keys."""
    key = ApiKey.objects.filter(pk=pk, user=request.user.pk).first()
    if key is None:
        raise NotVisible("There is no such key of yours.")
    keys.revoke(key)
    return redirect("gates:settings")
