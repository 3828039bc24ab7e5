"""Standing grants: kept in step with the record, found for a call, listed and revoked.

The record of the run that made a grant is the truth about it, its end included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from gates import access, columns
from gates.models import ApiKey, Grant
from gates.principals import Principal, is_live, principal_for_key
from runs import record
from runs.kernel import grants as rules
from runs.kernel.calls import Call
from runs.kernel.events import Event, EventKind
from runs.kernel.moments import milliseconds, moment
from runs.models import Event as EventRow
from runs.models import Run
from runs.record import Turn
from runs.turns import folding

KINDS: Final = frozenset({EventKind.GRANT_ISSUED, EventKind.GRANT_REVOKED})
# More grants than this for one call say the same thing again.
MAX_FOUND: Final = 100
_FACTS: Final = (
    "scope",
    "match_type",
    "match_value",
    "principal",
    "conversation",
    "granted_by",
    "source_request_id",
    "policy_version",
    "granted_at",
    "expires_at",
    "revoked_at",
    "revoked_by",
)


# --- the projection ------------------------------------------------------------------------------


def project(turn: Turn) -> None:
    """Bring the grants of the run past the events of this turn."""
    told = [event for event in turn.events if event.kind in KINDS]
    if not told:
        return
    known = {grant.pk: grant for grant in Grant.objects.filter(run=turn.run)}
    for grant in _applied(turn.run, told, known):
        grant.save(force_insert=grant._state.adding)


def rebuild(run: Run) -> int:
    """Make the grants of the run anew from its record; returns how many rows were off."""
    with record.turn(run.pk, actor="system", surface="command") as turn:
        rows = EventRow.objects.filter(run=turn.run, kind__in=KINDS).order_by("seq")
        events = [folding.to_event(row) for row in rows]
        made = {grant.pk: grant for grant in _applied(turn.run, events, {})}
        kept = {grant.pk: grant for grant in Grant.objects.filter(run=turn.run)}
        repaired = 0
        for pk, grant in made.items():
            old = kept.pop(pk, None)
            if old is not None and _values(old) == _values(grant):
                continue
            repaired += 1
            grant.save(force_insert=old is None)
        Grant.objects.filter(pk__in=kept).delete()
        return repaired + len(kept)


def _values(grant: Grant) -> tuple[Any, ...]:
    return tuple(getattr(grant, name) for name in _FACTS)


def _applied(run: Run, events: Iterable[Event], known: Mapping[UUID, Grant]) -> list[Grant]:
    """The grants that these events made or ended, as they are after them."""
    grants = dict(known)
    changed: dict[UUID, Grant] = {}
    told = [(UUID(str(event.fields["grantId"])), event) for event in events]
    # A copy of a record tells of grants that stay with the run that made them.
    elsewhere = set(
        Grant.objects.filter(pk__in={pk for pk, _ in told})
        .exclude(run=run)
        .values_list("pk", flat=True)
    )
    for pk, event in told:
        if pk in elsewhere:
            continue
        if event.kind == EventKind.GRANT_ISSUED:
            if pk not in grants:
                grants[pk] = changed[pk] = _issued(run, pk, event)
            continue
        grant = grants.get(pk)
        # Ended twice, it ended the first time (I52).
        if grant is not None and grant.revoked_at is None:
            grant.revoked_at = moment(event.ts)
            grant.revoked_by = columns.text(event.fields["revokedBy"], 200)
            changed[pk] = grant
    return list(changed.values())


def _issued(run: Run, pk: UUID, event: Event) -> Grant:
    told = event.fields
    return Grant(
        id=pk,
        run=run,
        scope=told["scope"],
        match_type=told["matchType"],
        match_value=columns.text(told["matchValue"], 60),
        principal=columns.text(told.get("principal", ""), 200),
        conversation=columns.text(told.get("conversation", ""), 200),
        granted_by=columns.text(told["grantedBy"], 200),
        source_request_id=columns.request_id(told["sourceRequestId"]),
        policy_version=columns.text(told.get("policyVersion", ""), 20),
        granted_at=moment(event.ts),
        expires_at=columns.time_of(told.get("expiresAt")),
    )


# --- the gate of a call --------------------------------------------------------------------------


def find(call: Call, principal: str, conversation: str) -> Sequence[rules.Grant]:
    """The grants in force that may cover this call; which one does is the kernel's to say."""
    named = Q(match_type="tool", match_value=call.tool)
    category = str(call.facts.get("category") or "")
    if category:
        named |= Q(match_type="category", match_value=category)
    theirs = Q(scope__in=["tenant", "category"]) | Q(scope="principal", principal=principal)
    if conversation:
        theirs |= Q(scope="conversation", conversation=conversation)
    rows = Grant.objects.filter(named, theirs, in_force()).order_by("-granted_at", "-id")
    return [_rule(row) for row in rows[:MAX_FOUND]]


def _rule(row: Grant) -> rules.Grant:
    return rules.Grant(
        grant_id=str(row.pk),
        scope=row.scope,
        match_type=row.match_type,
        match_value=row.match_value,
        principal=row.principal,
        conversation=row.conversation,
        granted_at=milliseconds(row.granted_at),
        expires_at=None if row.expires_at is None else milliseconds(row.expires_at),
    )


def in_force() -> Q:
    """Not revoked, and not over by the database's clock (I50)."""
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=Now()))


def owner(actor: str) -> Principal:
    """Whoever started a run, with the rights they have now (I72)."""
    kind, _, name = actor.partition(":")
    if kind == "user" and name.isdecimal():
        from django.contrib.auth.models import User

        user = User.objects.filter(pk=int(name), is_active=True).first()
        if user is not None:
            return Principal.for_user(user, "worker")
    if kind == "key":
        key = ApiKey.objects.select_related("user").filter(name=name.partition("/")[0]).first()
        if key is not None and is_live(key):
            return principal_for_key(key)
    return Principal(actor=actor, surface="worker")


# --- what people do with them --------------------------------------------------------------------


def visible(who: Principal) -> QuerySet[Grant]:
    """The grants that this caller may see, newest first."""
    access.need_scope(who, "read")
    return access.visible_grants(who).select_related("run").order_by("-granted_at", "-id")


def revoke(pk: UUID, *, principal: Principal) -> Grant:
    """End a grant, from the next call on; done twice it ended the first time (I52, I55)."""
    grant = access.grant_or_404(principal, pk)
    access.need_revoke(principal, grant)
    with record.turn(grant.run_id, actor=principal.actor, surface=principal.surface) as turn:
        grant = Grant.objects.select_related("run").get(pk=pk)
        if grant.revoked_at is None:
            told = {"grantId": str(pk), "revokedBy": principal.actor}
            turn.append(EventKind.GRANT_REVOKED, (), told)
    return Grant.objects.select_related("run").get(pk=pk)
