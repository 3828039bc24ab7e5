"""What does not go on by itself: held runs, lapsed leases, questions that are late or nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from gates.models import ApiKey, Request, Router
from runs.models import Attempt, Audience, AudienceToken, Run
from runs.people.audiences import EVERYONE

SHOWN: Final = 20
COUNTED_TO: Final = 1_000
# Distinct audiences of open questions that are looked at; installations have some dozens.
AUDIENCES: Final = 2_000
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Some(Generic[Row]):
    """The first of some rows, and how many there are, counted so far and no further."""

    rows: Sequence[Row]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Everything that waits for an operator."""

    held: Some[Run]
    lapsed: Some[Attempt]
    nobody: Some[Request]
    overdue: Some[Request]


def stuck() -> Stuck:
    """Read it all; each kind is served by an index of its own."""
    return Stuck(
        held=_some(held_runs().order_by("changed_at")),
        lapsed=_some(lapsed_attempts().select_related("run").order_by("lease_until")),
        nobody=_some(unanswerable().select_related("run").order_by("created_at")),
        overdue=_some(overdue_requests().select_related("run").order_by("due_at")),
    )


def _some(found: QuerySet[Row]) -> Some[Row]:
    rows = list(found[: SHOWN + 1])
    count = len(rows) if len(rows) <= SHOWN else counted(found)
    return Some(rows[:SHOWN], count)


def counted(found: QuerySet[Row]) -> int:
    """How many there are, COUNTED_TO at most: no count costs more the worse things are."""
    return found.order_by()[:COUNTED_TO].count()


def count_text(count: int) -> str:
    """The count for people: `1000+` where it was not counted further."""
    return f"{count}+" if count >= COUNTED_TO else str(count)


def held_runs() -> QuerySet[Run]:
    """Runs whose workflow changed or does not load: they wait for a person's word."""
    return Run.objects.filter(~Q(held_reason=""), ended_at=None)


def lapsed_attempts() -> QuerySet[Attempt]:
    """Steps whose worker fell silent; the next sweep counts them as interrupted."""
    return Attempt.objects.filter(status=Attempt.Status.RUNNING, lease_until__lt=Now())


def overdue_requests() -> QuerySet[Request]:
    """Open questions past the time they were wanted by."""
    return Request.objects.filter(status__in=Request.OPEN, due_at__lt=Now())


def unanswerable() -> QuerySet[Request]:
    """Open questions whose audience has nobody in it now."""
    return Request.objects.filter(status__in=Request.OPEN, audience__in=empty_audiences())


def empty_audiences() -> list[int]:
    """Audiences of open questions that name no active person, key or service."""
    asked = Request.objects.filter(audience=OuterRef("pk"), status__in=Request.OPEN)
    wanted = Audience.objects.filter(Exists(asked)).order_by("-pk").values("pk")[:AUDIENCES]
    named: dict[int, set[str]] = {}
    for audience, token in AudienceToken.objects.filter(audience__in=list(
        wanted.values_list("pk", flat=True)
    )).values_list("audience_id", "token"):  # fmt: skip
        named.setdefault(audience, set()).add(token)
    alive = _alive(set().union(*named.values())) if named else set()
    return [audience for audience, tokens in named.items() if not tokens & alive]


def names_of(audiences: Iterable[int]) -> dict[int, str]:
    """Whom each audience names, for people to read."""
    named: dict[int, list[str]] = {}
    found = AudienceToken.objects.filter(audience__in=list(audiences)).order_by("token")
    for audience, token in found.values_list("audience_id", "token"):
        named.setdefault(audience, []).append(token.partition(":")[2] or token)
    return {audience: ", ".join(names) for audience, names in named.items()}


def _alive(tokens: set[str]) -> set[str]:
    """Those of the tokens that somebody has."""
    names: dict[str, list[str]] = {}
    for token in tokens:
        kind, _, name = token.partition(":")
        names.setdefault(kind, []).append(name)
    found = {f"user:{name}" for name in _people(names.get("user", []))}
    found |= {f"group:{name}" for name in _groups(names.get("group", []))}
    found |= {f"perm:{name}" for name in _permissions(names.get("perm", []))}
    found |= {f"key:{name}" for name in _keys(names.get("key", []))}
    found |= {f"router:{name}" for name in _routers(names.get("router", []))}
    if EVERYONE in names and User.objects.filter(is_active=True).exists():
        found.add(EVERYONE)
    return found


def _people(names: list[str]) -> list[str]:
    found = User.objects.filter(username__in=names, is_active=True)
    return list(found.values_list("username", flat=True)) if names else []


def _groups(names: list[str]) -> list[str]:
    found = Group.objects.filter(name__in=names, user__is_active=True)
    return list(found.values_list("name", flat=True).distinct()) if names else []


def _permissions(names: list[str]) -> list[str]:
    if not names:
        return []
    if User.objects.filter(is_active=True, is_superuser=True).exists():
        return names
    held = Permission.objects.filter(Q(user__is_active=True) | Q(group__user__is_active=True))
    found = held.values_list("content_type__app_label", "codename").distinct()
    return [f"{app}.{codename}" for app, codename in found]


def _keys(names: list[str]) -> list[str]:
    live = Q(expires_at=None) | Q(expires_at__gt=Now())
    found = ApiKey.objects.filter(live, name__in=names, user=None, revoked_at=None)
    return list(found.values_list("name", flat=True)) if names else []


def _routers(names: list[str]) -> list[str]:
    found = Router.objects.filter(name__in=names, enabled=True)
    return list(found.values_list("name", flat=True)) if names else []
