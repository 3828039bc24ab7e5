"""What the settings, a team's page and the delivery log show of channels and messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import Group
from django.urls import reverse

from gates import access
from gates.access import visible_requests
from gates.lists.rows import question_line
from gates.models import Channel, Delivery, Preference
from gates.notify import kinds
from gates.notify.access import (
    channels_of_team,
    may_add,
    may_change_team,
    visible_deliveries,
)
from gates.notify.forms import QuietForm
from gates.principals import Principal
from runs.access import visible_runs
from runs.pages import words
from runs.plaintext import visible

PAGE: Final = 50
_STATES: Final = {
    Delivery.State.PENDING: "waits",
    Delivery.State.SENDING: "is sent",
    Delivery.State.SENT: "sent",
    Delivery.State.FAILED: "failed",
    Delivery.State.WITHDRAWN: "not needed",
}
_SHAPES: Final = {
    Delivery.State.PENDING: "queued",
    Delivery.State.SENDING: "running",
    Delivery.State.SENT: "passed",
    Delivery.State.FAILED: "failed",
    Delivery.State.WITHDRAWN: "skipped",
}


def own_part(who: Principal, quiet_form: QuietForm | None = None) -> dict[str, Any]:
    """The settings of one person: channels, what may be added, quiet hours."""
    assert who.user is not None
    channels = list(Channel.objects.filter(user=who.user, removed_at=None).order_by("pk"))
    has_mail = any(channel.kind == Channel.Kind.MAIL for channel in channels)
    offered = [
        {"kind": kind, "label": label, "url": reverse("gates:channel-add", args=[kind])}
        for kind, label in Channel.Kind.choices
        if may_add(who, kind, None) and not (kind == Channel.Kind.MAIL and has_mail)
    ]
    preference = Preference.objects.filter(user=who.user).first()
    return {
        "channels": _shown(channels),
        "offered": offered,
        "quiet_form": quiet_form or QuietForm.of(preference),
        "log_url": reverse("gates:delivery-list"),
    }


def team_part(who: Principal, team: Group) -> dict[str, Any]:
    """The channels of a team for those who may change them; empty for everybody else."""
    if not may_change_team(who):
        return {}
    return {
        "channels": _shown(channels_of_team(who, team)),
        "offered": [
            {
                "kind": kind,
                "label": label,
                "url": reverse("gates:team-channel-add", args=[team.pk, kind]),
            }
            for kind, label in Channel.Kind.choices
        ],
    }


def _shown(channels: Sequence[Channel]) -> list[dict[str, Any]]:
    failed = _last_failures(channels)
    return [
        {
            "id": channel.pk,
            "url": reverse("gates:channel", args=[channel.pk]),
            "name": visible(channel.name),
            "kind": channel.get_kind_display(),
            "address": visible(channel.shown_address),
            "wants": "; ".join(
                words for group, words in kinds.GROUP_WORDS.items() if group in channel.wants
            ),
            "digest": "" if channel.digest == "off" else channel.get_digest_display(),
            "trouble": failed.get(channel.pk, ""),
        }
        for channel in channels
    ]


def _last_failures(channels: Sequence[Channel]) -> dict[int, str]:
    """What went wrong with the newest message of each channel, where that failed."""
    last: dict[int, Delivery] = {}
    for channel in channels:
        newest = channel.deliveries.filter(state__in=["sent", "failed"]).order_by("-pk").first()
        if newest is not None:
            last[channel.pk] = newest
    return {pk: one.error for pk, one in last.items() if one.state == Delivery.State.FAILED}


def log_page(who: Principal, before: int | None) -> dict[str, Any]:
    """The messages this person may see, newest first, a page at a time."""
    found = visible_deliveries(who).select_related(
        "channel__user", "channel__team", "request", "run"
    )
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found.order_by("-pk")[: PAGE + 1])
    shown, more = rows[:PAGE], len(rows) > PAGE
    requests = {row.request_id for row in shown if row.request_id is not None}
    runs = {row.run_id for row in shown if row.run_id is not None and row.request_id is None}
    seen = set(visible_requests(who).filter(pk__in=requests).values_list("pk", flat=True))
    seen |= set(visible_runs(who).filter(pk__in=runs).values_list("pk", flat=True))
    return {
        "rows": [_row(row, seen) for row in shown],
        "everybody": access.may_operate(who),
        "next_url": f"{reverse('gates:delivery-list')}?before={shown[-1].pk}" if more else None,
        "settings_url": reverse("gates:settings"),
    }


def _row(delivery: Delivery, seen: set[UUID]) -> dict[str, Any]:
    title, url = _about(delivery, seen)
    channel = delivery.channel
    at: datetime = delivery.done_at or delivery.created_at
    owner = channel.team.name if channel.team is not None else str(channel.user)
    return {
        "uid": delivery.uid,
        "title": title,
        "url": url,
        "kind": kinds.WORDS.get(delivery.kind, delivery.kind),
        "state": _SHAPES[Delivery.State(delivery.state)],
        "word": _STATES[Delivery.State(delivery.state)],
        "channel": visible(channel.name),
        "owner": visible(owner),
        "address": visible(channel.shown_address) or "removed",
        "attempts": delivery.attempts,
        "error": delivery.error,
        "at": at,
        "waits_until": delivery.next_at if delivery.state == Delivery.State.PENDING else None,
        "can_again": delivery.state == Delivery.State.FAILED and channel.removed_at is None,
    }


def _about(delivery: Delivery, seen: set[UUID]) -> tuple[str, str]:
    if delivery.kind == kinds.TEST:
        return "Obversa reaches this channel", ""
    if delivery.request is not None:
        if delivery.request.pk not in seen:
            return "A question that is not yours to see any more", ""
        row = delivery.request
        return question_line(row.decision_text), row.get_absolute_url()
    if delivery.run is not None and delivery.run.pk in seen:
        return words.title(delivery.run), delivery.run.get_absolute_url()
    return "A run that is not yours to see any more", ""
