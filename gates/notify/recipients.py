"""Who is told: whoever may answer, whoever asked, and teams that are named; asked at every send."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from gates import access
from gates.models import ApiKey, Channel, Delivery, Deputy, Request
from gates.notify import kinds
from runs.access import visible_runs
from runs.models import Run
from runs.people.audiences import EVERYONE, members_of
from runs.people.principals import Principal

_PERSON: Final = re.compile(r"user:(\d{1,18})")


def channels_for(kind: str, run: Run, row: Request | None) -> list[Channel]:
    """The channels that are told this, each once."""
    group = kinds.GROUP_OF[kind]
    if row is None:
        found = _of_run(run)
    elif kind == kinds.ASSIGNED:
        found = _of_holder(row)
    elif kind in kinds.ASKING:
        found = _of_answerers(row)
    else:
        found = _of_told(row)
    return [channel for channel in found if group in channel.wants]


def live_channels() -> QuerySet[Channel]:
    """The channels that lead somewhere now."""
    return Channel.objects.filter(
        Q(user__isnull=True) | Q(user__is_active=True), removed_at=None
    ).select_related("user__preference", "team")


def why_not(delivery: Delivery) -> str:
    """Why a message must not go out any more; empty when it may. Rights are those of now."""
    channel, row, run = delivery.channel, delivery.request, delivery.run
    if channel.removed_at is not None:
        return "The channel was removed."
    if channel.user is not None and not channel.user.is_active:
        return "The account is closed."
    if row is not None:
        return _why_not_request(delivery.kind, channel, row)
    if run is not None and not _may_hear_of_run(channel, run):
        return "The run is no longer theirs to see."
    return ""


def _why_not_request(kind: str, channel: Channel, row: Request) -> str:
    asking = kind in kinds.ASKING
    if asking and not row.is_open:
        return "The question was closed before this was sent."
    if kind == kinds.ASSIGNED and person_behind(row.holder) != channel.user_id:
        return "The question is no longer theirs to hold."
    if channel.user is None:
        assert channel.team is not None
        named = f"group:{channel.team.name}" in members_of(row.audience_id)
        return "" if named else "The question is not for this team any more."
    who = Principal.for_user(channel.user)
    if asking:
        return "" if access.may_answer(who, row) else "The question is not theirs to answer."
    return "" if access.may_see(who, row) else "The question is no longer theirs to see."


def _of_answerers(row: Request) -> Iterator[Channel]:
    tokens = members_of(row.audience_id)
    may: dict[int, bool] = {}
    for channel in live_channels().filter(_teams(tokens) | Q(user__in=_candidates(tokens))):
        if channel.user is None:
            yield channel
            continue
        if channel.user.pk not in may:
            may[channel.user.pk] = access.may_answer(Principal.for_user(channel.user), row)
        if may[channel.user.pk]:
            yield channel


def _of_holder(row: Request) -> Iterator[Channel]:
    """Whoever the question was given to."""
    holder = person_behind(row.holder) if row.holder else None
    yield from live_channels().filter(user=holder) if holder is not None else ()


def _candidates(tokens: Iterable[str]) -> QuerySet[User]:
    """Everybody whom the tokens may mean; whether they may answer is asked one by one."""
    users, groups = _names(tokens, "user"), _names(tokens, "group")
    if EVERYONE in tokens or _names(tokens, "perm"):
        return User.objects.filter(is_active=True)
    deputies = Deputy.objects.values("deputy")
    meant = Q(username__in=users) | Q(groups__name__in=groups) | Q(pk__in=deputies)
    return User.objects.filter(meant, is_active=True)


def _of_told(row: Request) -> Iterator[Channel]:
    """Whoever was told that the question waits, and whoever asked it; not who answered."""
    told = Delivery.objects.filter(
        request=row,
        kind__in=kinds.ASKING,
        state__in=[Delivery.State.SENT, Delivery.State.SENDING],
    )
    asker = person_behind(row.asked_by)
    wanted = Q(pk__in=told.values("channel"))
    if asker is not None:
        wanted |= Q(user=asker)
    answered_by = person_behind(row.answered_by)
    for channel in live_channels().filter(wanted):
        if channel.user_id is None or channel.user_id != answered_by:
            yield channel


def _of_run(run: Run) -> Iterator[Channel]:
    wanted = _teams(members_of(run.audience_id))
    starter = person_behind(run.started_by)
    if starter is not None:
        wanted |= Q(user=starter)
    yield from live_channels().filter(wanted)


def _may_hear_of_run(channel: Channel, run: Run) -> bool:
    if channel.user is None:
        assert channel.team is not None
        return f"group:{channel.team.name}" in members_of(run.audience_id)
    return visible_runs(Principal.for_user(channel.user)).filter(pk=run.pk).exists()


def _teams(tokens: Iterable[str]) -> Q:
    return Q(team__name__in=_names(tokens, "group"))


def _names(tokens: Iterable[str], part: str) -> list[str]:
    return [token[len(part) + 1 :] for token in tokens if token.startswith(f"{part}:")]


def person_behind(actor: str) -> int | None:
    """The person an actor of the record is, or whose key it is."""
    if match := _PERSON.fullmatch(actor):
        return int(match[1])
    if actor.startswith("key:"):
        name = actor[4:].split("/", maxsplit=1)[0]
        return ApiKey.objects.filter(name=name).values_list("user_id", flat=True).first()
    return None
