"""Who may have which channel, and whose messages somebody sees: the only file that decides it."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from gates import access
from gates.models import Channel, Delivery
from gates.principals import Principal
from gates.teams import groups


def may_add(who: Principal, kind: str, team: Group | None) -> bool:
    """Own mail and own services are everybody's; teams and webhooks those who may change teams.

    A webhook lets its author choose where this server posts to.
    """
    if who.user is None or who.key_name or kind not in Channel.Kind.values:
        return False
    if team is None and kind != Channel.Kind.WEBHOOK:
        return True
    return who.has_perm("gates.change_team")


def need_add(who: Principal, kind: str, team: Group | None) -> None:
    """Raise NotVisible for what is no channel, and Forbidden for what is not theirs to add."""
    if kind not in Channel.Kind.values:
        raise access.NotVisible("There is no such kind of channel.")
    if not may_add(who, kind, team):
        raise access.Forbidden("Only somebody who may change teams adds such a channel.")


def may_change_team(who: Principal) -> bool:
    """Whether this person says where a team that they see is told."""
    return who.user is not None and not who.key_name and who.has_perm("gates.change_team")


def channels_of_team(who: Principal, team: Group) -> list[Channel]:
    """The team's channels, for those who may change them; nothing for the others."""
    if not may_change_team(who):
        return []
    return list(Channel.objects.filter(team=team, removed_at=None).order_by("pk"))


def channel_or_404(who: Principal, pk: int) -> Channel:
    """One's own channel, or one of a team that one may change; NotVisible for all others."""
    found = Channel.objects.filter(pk=pk, removed_at=None).select_related("user", "team").first()
    if found is None or not _is_theirs(who, found):
        raise access.NotVisible("There is no such channel here.")
    return found


def _is_theirs(who: Principal, channel: Channel) -> bool:
    if who.user is None or who.key_name:
        return False
    if channel.user_id is not None:
        return channel.user_id == who.user.pk
    return may_change_team(who) and channel.team in groups.visible_teams(who)


def visible_deliveries(who: Principal) -> QuerySet[Delivery]:
    """What was sent to this person; everything for operators."""
    if who.user is None or who.key_name:
        return Delivery.objects.none()
    if access.may_operate(who):
        return Delivery.objects.all()
    return Delivery.objects.filter(channel__user=who.user)


def delivery_or_404(who: Principal, uid: UUID) -> Delivery:
    """One message of these; NotVisible for all others."""
    found = visible_deliveries(who).filter(uid=uid).select_related("channel").first()
    if found is None:
        raise access.NotVisible("There is no such message here.")
    return found
