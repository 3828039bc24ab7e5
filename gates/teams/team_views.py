"""Teams: the list of them, one team's queue, how long it takes, when and how much it works."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from gates.access import Forbidden, NotVisible
from gates.lists import narrowing, saved
from gates.lists.saved import FilterRefused
from gates.notify import page as notify_page
from gates.teams import calendars, groups, places, team_page
from runs.kernel.worktime import DEFAULT
from runs.people.visitors import caller
from runs.plaintext import visible

SHOWN_MEMBERS = 8


@never_cache
@login_required
@require_GET
def team_list(request: HttpRequest) -> HttpResponse:
    """Show the reader's teams with what waits for each."""
    rows = groups.team_rows(caller(request))
    members = _members([row.id for row in rows])
    page = {
        "teams": [
            {
                "id": row.id,
                "url": reverse("gates:team", args=[row.id]),
                "name": visible(row.name),
                "members_text": members.get(row.id, "nobody yet"),
                "open_count": row.open_count and team_page.count_text(row.open_count),
                "unclaimed_count": row.unclaimed_count
                and team_page.count_text(row.unclaimed_count),
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
    group = groups.find_team(who, pk)
    page = team_page.queue_page(who, group, request.GET, timezone.now())
    page["team"]["members_text"] = _members([group.pk]).get(group.pk, "nobody yet")
    page["notify"] = notify_page.team_part(who, group)
    return render(request, "gates/team.html", page)


@never_cache
@login_required
@require_GET
def team_times(request: HttpRequest, pk: int) -> HttpResponse:
    """Show how long the team took, by day or by week."""
    who = caller(request)
    group = groups.find_team(who, pk)
    page = team_page.times_page(who, group, request.GET.get("by", ""), timezone.now())
    return render(request, "gates/team_times.html", page)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def team_calendar(request: HttpRequest, pk: int) -> HttpResponse:
    """Show and change when the team works."""
    who = caller(request)
    group = groups.find_team(who, pk)
    if not groups.may_change(who):
        raise Forbidden("Only somebody who may change teams says when one works.")
    if request.method != "POST":
        known = calendars.calendar_of(group)
        return _calendar(request, group, calendars.CalendarForm.of(known or DEFAULT))
    if request.POST.get("none") == "on":
        calendars.set_calendar(group, None, by=request.user.pk)
        return redirect("gates:team", pk=pk)
    form = calendars.CalendarForm(request.POST)
    if not form.is_valid():
        return _calendar(request, group, form, status=422)
    calendars.set_calendar(group, form.cleaned_data["calendar"], by=request.user.pk)
    return redirect("gates:team", pk=pk)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def team_places(request: HttpRequest, pk: int) -> HttpResponse:
    """Show and change how many runs go at once for the team."""
    who = caller(request)
    group = groups.find_team(who, pk)
    if not groups.may_change(who):
        raise Forbidden("Only somebody who may change teams says how many runs go at once.")
    form = places.PlacesForm(
        request.POST if request.method == "POST" else None,
        initial={"most": places.limit_of(group)},
    )
    if request.method == "POST" and form.is_valid():
        assert request.user.pk is not None
        places.set_limit(group, form.cleaned_data["most"], by=request.user.pk)
        return redirect("gates:team", pk=pk)
    page = {
        "team": {"name": visible(group.name), "url": reverse("gates:team", args=[group.pk])},
        "form": form,
        "here": request.path,
        "places_text": places.in_words(group),
    }
    return render(request, "gates/team_places.html", page, status=422 if form.is_bound else 200)


def _calendar(request: HttpRequest, group: Group, form: Any, status: int = 200) -> HttpResponse:
    page = {
        "team": {"name": visible(group.name), "url": reverse("gates:team", args=[group.pk])},
        "form": form,
        "here": request.path,
        "is_set": calendars.calendar_of(group) is not None,
    }
    return render(request, "gates/team_calendar.html", page, status=status)


@login_required
@require_POST
def filter_save(request: HttpRequest) -> HttpResponse:
    """Keep the filter of a list under a name of the reader's own, and show the list with it."""
    place = request.POST.get("place", "")
    here = list_of(request, place)
    given = _from_query(request.POST.get("query", ""))
    names = ("tab", *narrowing.FIELDS)
    query = saved.query_of(given, names)
    try:
        if not saved.query_of(given, narrowing.FIELDS):
            query = ""
        assert request.user.pk is not None
        saved.save_filter(request.user.pk, place, request.POST.get("name", ""), query)
    except FilterRefused as refusal:
        messages.error(request, str(refusal))
    return redirect(f"{here}?{query}" if query else here)


@login_required
@require_POST
def filter_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget one of the reader's own filters."""
    assert request.user.pk is not None
    gone = saved.delete_filter(request.user.pk, pk)
    if gone is None:
        raise NotVisible("There is no such filter of yours.")
    try:
        return redirect(list_of(request, gone.place))
    except NotVisible:  # the reader is no longer of that team
        return redirect("gates:inbox")


def list_of(request: HttpRequest, place: str) -> str:
    """The address of a list by its name; its team has to be one that the reader sees."""
    if place == "inbox":
        return reverse("gates:inbox")
    kind, _, key = place.partition(":")
    if kind == "team" and key.isascii() and key.isdigit() and len(key) < 19:
        return reverse("gates:team", args=[groups.find_team(caller(request), int(key)).pk])
    raise NotVisible("There is no such list here.")


def _from_query(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query[: saved.MAX_QUERY], max_num_fields=20))
    except ValueError:  # more fields than any form has
        return {}
