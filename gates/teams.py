"""Teams: the groups of the admin, with the questions that wait for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group
from django.db.models import Count, Min

from gates import access
from gates.models import Request
from gates.principals import Principal
from runs.models import AudienceToken


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRow:
    """One team of the list."""

    id: int
    name: str
    member_count: int
    open_count: int
    unclaimed_count: int
    oldest_at: datetime | None


def visible_teams(principal: Principal) -> list[Group]:
    """The reader's own teams; every team for those who see every question."""
    if access.sees_all(principal):
        return list(Group.objects.order_by("name"))
    if principal.user is None:
        return []
    return list(principal.user.groups.order_by("name"))


def team_rows(principal: Principal) -> list[TeamRow]:
    """The teams with what waits for them, in four statements however many teams there are."""
    groups = visible_teams(principal)
    members = dict(
        Group.objects.filter(pk__in=[group.pk for group in groups])
        .annotate(members=Count("user"))
        .values_list("pk", "members")
    )
    teams_of = _teams_by_audience(groups)
    opened: Counter[int] = Counter()
    unclaimed: Counter[int] = Counter()
    oldest: dict[int, datetime] = {}
    waiting = (
        Request.objects.filter(audience__in=list(teams_of), status__in=Request.OPEN)
        .values_list("audience", "status")
        .annotate(count=Count("pk"), oldest=Min("created_at"))
        .order_by()
    )
    for audience, status, count, first in waiting:
        for team in teams_of[audience]:
            opened[team] += count
            unclaimed[team] += count if status == Request.Status.PENDING else 0
            oldest[team] = min(first, oldest.get(team, first))
    return [
        TeamRow(
            id=group.pk,
            name=group.name,
            member_count=members.get(group.pk, 0),
            open_count=opened[group.pk],
            unclaimed_count=unclaimed[group.pk],
            oldest_at=oldest.get(group.pk),
        )
        for group in groups
    ]


def _teams_by_audience(groups: list[Group]) -> dict[int, list[int]]:
    by_token = {f"group:{group.name}": group.pk for group in groups}
    found = AudienceToken.objects.filter(token__in=list(by_token))
    teams: dict[int, list[int]] = defaultdict(list)
    for audience, token in found.values_list("audience_id", "token"):
        teams[audience].append(by_token[token])
    return teams
