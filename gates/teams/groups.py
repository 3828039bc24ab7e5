"""Teams: the groups of the admin, with the questions that wait for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group
from django.db.models import Count, OuterRef, Subquery

from gates import access
from gates.models import Request
from gates.principals import Principal
from gates.queries import QUEUE_TO, count_up_to
from runs.models import Audience, AudienceToken


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


def find_team(principal: Principal, pk: int) -> Group:
    """The team, for somebody who may see its queue; NotVisible for everybody else."""
    for group in visible_teams(principal):
        if group.pk == pk:
            return group
    raise access.NotVisible("There is no such team here.")


def may_change(principal: Principal) -> bool:
    """Whether this person says when a team that they see works."""
    return principal.user is not None and principal.has_perm("gates.change_team")


def team_rows(principal: Principal) -> list[TeamRow]:
    """The teams with what waits for them, in five statements however many teams there are.

    A team's numbers are counted up to 999 for each of its audiences; 999 means as many or more.
    """
    groups = visible_teams(principal)
    members = dict(
        Group.objects.filter(pk__in=[group.pk for group in groups])
        .annotate(members=Count("user"))
        .values_list("pk", "members")
    )
    teams_of = _teams_by_audience(groups)
    counts = count_up_to(
        [
            (f"{audience} {status}", Request.objects.filter(audience=audience, status=status))
            for audience in teams_of
            for status in Request.OPEN
        ],
        QUEUE_TO,
    )
    oldest_of = _oldest(list(teams_of))
    opened: Counter[int] = Counter()
    unclaimed: Counter[int] = Counter()
    oldest: dict[int, datetime] = {}
    for audience, teams in teams_of.items():
        free, held = (counts.get(f"{audience} {status}", 0) for status in Request.OPEN)
        for team in teams:
            opened[team] += free + held
            unclaimed[team] += free
            if (first := oldest_of.get(audience)) is not None:
                oldest[team] = min(first, oldest.get(team, first))
    return [
        TeamRow(
            id=group.pk,
            name=group.name,
            member_count=members.get(group.pk, 0),
            open_count=min(opened[group.pk], QUEUE_TO),
            unclaimed_count=min(unclaimed[group.pk], QUEUE_TO),
            oldest_at=oldest.get(group.pk),
        )
        for group in groups
    ]


def _oldest(audiences: list[int]) -> dict[int, datetime]:
    """When the oldest open question of each audience was asked; one look into the index each."""
    open_ones = Request.objects.filter(audience=OuterRef("pk"), status__in=Request.OPEN)
    first = Subquery(open_ones.order_by("created_at").values("created_at")[:1])
    found = Audience.objects.filter(pk__in=audiences).annotate(oldest=first)
    return {audience: at for audience, at in found.values_list("pk", "oldest") if at is not None}


def _teams_by_audience(groups: list[Group]) -> dict[int, list[int]]:
    by_token = {f"group:{group.name}": group.pk for group in groups}
    found = AudienceToken.objects.filter(token__in=list(by_token))
    teams: dict[int, list[int]] = defaultdict(list)
    for audience, token in found.values_list("audience_id", "token"):
        teams[audience].append(by_token[token])
    return teams
