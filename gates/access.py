"""Who may see, answer and rescue questions: the only file that decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from structlog.contextvars import bind_contextvars

from gates.answers import deputies
from gates.models import ApiKey, ArchivedRequest, Grant, Request
from gates.principals import Principal
from runs.access import Forbidden, NotVisible
from runs.errors import RunArchived
from runs.kernel.events import joined
from runs.models import Run
from runs.people.audiences import audiences_with
from runs.turns import statements
from runs.turns.folding import Memory

__all__ = [
    "Forbidden",
    "NotVisible",
    "Place",
    "SelfApproval",
    "answerable_audiences",
    "bars_requester",
    "find",
    "grant_or_404",
    "is_shown",
    "may_answer",
    "may_operate",
    "may_see",
    "may_withdraw",
    "need_revoke",
    "need_scope",
    "person_of",
    "place_of",
    "refusal_to_answer",
    "refusal_to_assign",
    "refusal_to_override",
    "run_of",
    "sees_all",
    "visible_grants",
    "visible_requests",
    "why_not_answer",
]

BREAK_GLASS: Final = "gates.break_glass"

_run_of: Final[Memory[UUID, UUID]] = Memory()
_ANY_SCOPE: Final = ("read", "claim", "answer", "operate", "start")


class SelfApproval(Forbidden):
    """The caller asked, and may not answer for that reason."""

    code = "self-approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where somebody stands when they answer: their own place, or that of a person who is away."""

    deputy_for: str = ""
    teams: tuple[str, ...] = ()


def sees_all(who: Principal) -> bool:
    """People with the view permission, and keys that belong to nobody."""
    is_program = bool(who.key_name) and who.user is None and not who.router
    return is_program or who.has_perm("gates.view_request")


def visible_requests(who: Principal) -> QuerySet[Request]:
    """The questions this caller may see, as one query: its own to answer, and those of its runs."""
    if not any(who.has_scope(scope) for scope in _ANY_SCOPE):
        return Request.objects.none()
    if sees_all(who):
        return Request.objects.all()
    audiences = who.audiences
    return Request.objects.filter(
        Q(audience__in=answerable_audiences(who))
        | Q(asked_by__in=who.names)
        | Q(run__started_by__in=who.names)
        | Q(run__audience__in=audiences)
    )


def answerable_audiences(who: Principal) -> list[int]:
    """The audiences this caller is in, by themselves or for somebody who is out of office."""
    others = deputies.stood_in_for(who)
    if not others:
        return who.audiences
    return audiences_with(who.tokens.union(*(absent.tokens for absent in others)))


def runs_with_questions_for(audiences: list[int]) -> Q:
    """Whoever may answer a question of a workflow sees the run it belongs to."""
    asked = Request.objects.filter(audience__in=audiences).values("run")
    before = ArchivedRequest.objects.filter(audience__in=audiences).values("run")
    return Q(kind=Run.Kind.WORKFLOW) & (Q(pk__in=asked) | Q(pk__in=before))


def find(who: Principal, pk: UUID) -> Request:
    """The question, for somebody who may see it; NotVisible for everybody else."""
    for row in statements.rows(Request, pk=pk):
        if is_shown(who, row):
            return row
    archived = archived_request(who, pk)
    if archived is not None:
        refusal = RunArchived.of(archived.run)
        if archived.receipt is not None:
            refusal.receipt_url = reverse("gates:receipt", args=[pk])
        raise refusal
    raise NotVisible(f"There is no question {pk} here.")


def is_shown(who: Principal, row: Request) -> bool:
    """Whether this caller may see the question; the log names it from now on."""
    if not may_see(who, row):
        return False
    _run_of.put(row.pk, row.run_id)
    bind_contextvars(run_id=str(row.run_id), step=joined(tuple(row.step_path)))
    return True


def run_of(pk: UUID) -> UUID | None:
    """The run of a question that this process has shown to somebody."""
    return _run_of.get(pk)


def archived_request(who: Principal, pk: UUID) -> ArchivedRequest | None:
    """What remains of a question whose run is archived, for those who could see it."""
    found = ArchivedRequest.objects.select_related("run").filter(pk=pk).first()
    return found if found is not None and may_see(who, found) else None


def may_see(who: Principal, row: Request | ArchivedRequest) -> bool:
    """The rule of `visible_requests` for a question that is at hand: what is known comes first."""
    if not any(who.has_scope(scope) for scope in _ANY_SCOPE):
        return False
    if who.is_in(row.audience_id) or sees_all(who) or row.asked_by in who.names:
        return True
    if row.run.started_by in who.names or who.is_in(row.run.audience_id):
        return True
    if isinstance(row, ArchivedRequest):
        return any(absent.is_in(row.audience_id) for absent in deputies.stood_in_for(who))
    return _stands_in(who, row)


def may_answer(who: Principal, row: Request) -> bool:
    """Claim, release and answer: the question's audience, and nobody for another reason."""
    return refusal_to_answer(who, row) is None


def refusal_to_answer(who: Principal, row: Request, *scopes: str) -> Forbidden | None:
    """What keeps this caller from answering (interactions.md I44), if anything does."""
    if not any(who.has_scope(scope) for scope in scopes or ("answer",)):
        return Forbidden("The key has no scope for answering.")
    if row.kind == Request.Kind.APPROVAL and who.user is None:
        # What a program could do by itself nobody has allowed (interactions.md I132).
        return Forbidden("A person decides about an action, and a key of nobody is no person.")
    if _is_of_the_run(who, row):
        return SelfApproval("The key that started a run cannot answer its questions.")
    if not (who.is_in(row.audience_id) or _stands_in(who, row)):
        return Forbidden("This question is for somebody else to answer.")
    if bars_requester(row.routing) and _asked(who, row):
        return SelfApproval("Whoever asked a question like this one cannot answer it.")
    if row.needed > 1 and who.user is None:
        return Forbidden("This question needs distinct people, and a key of nobody is no person.")
    return None


def why_not_answer(who: Principal, row: Request, *scopes: str) -> str:
    """The same in words; empty when nothing does."""
    refusal = refusal_to_answer(who, row, *scopes)
    return "" if refusal is None else str(refusal)


def place_of(who: Principal, row: Request) -> Place:
    """In whose place somebody who may answer does, and for which teams of the audience."""
    if who.is_in(row.audience_id):
        return Place(teams=_teams(who, row))
    for absent in deputies.stood_in_for(who):
        if _may_lend(absent, row):
            return Place(deputy_for=absent.actor, teams=_teams(absent, row))
    return Place()


def person_of(who: Principal) -> str:
    """The person, whichever of their keys they use; a key of nobody is itself, under all names."""
    if who.user is not None:
        return f"user:{who.user.pk}"
    return who.actor.partition("/")[0]


def bars_requester(routing: Mapping[str, Any]) -> bool:
    """Whether whoever asked is kept from answering (design D13)."""
    said = routing.get("excludeRequester")
    return said if isinstance(said, bool) else routing.get("risk") == "high"


def refusal_to_override(who: Principal) -> Forbidden | None:
    """Only people break the glass, signed in themselves: never a key, whoever's it is."""
    if who.user is None or who.key_name:
        return Forbidden("Only a person who is signed in breaks the glass.")
    if not who.has_perm(BREAK_GLASS):
        return Forbidden("Breaking the glass needs a permission that you do not have.")
    return None


def refusal_to_assign(who: Principal, row: Request) -> Forbidden | None:
    """Operators give a question to somebody, and people who may answer it themselves."""
    if may_operate(who):
        return None
    if who.user is None:
        return Forbidden("Only an operator, or somebody of its audience, assigns a question.")
    return refusal_to_answer(who, row, "claim", "answer")


def _stands_in(who: Principal, row: Request) -> bool:
    return any(_may_lend(absent, row) for absent in deputies.stood_in_for(who))


def _may_lend(absent: Principal, row: Request) -> bool:
    """Whether a deputy may answer in this person's place: what they may do, and no more."""
    barred = bars_requester(row.routing) and _asked(absent, row)
    return absent.is_in(row.audience_id) and not barred


def _teams(who: Principal, row: Request) -> tuple[str, ...]:
    if row.routing.get("onePerTeam") is not True:
        return ()
    named = row.audience.spec.get("groups", ())
    mine = () if who.rights is None else who.rights.groups
    return tuple(sorted(set(named).intersection(mine)))


def _is_of_the_run(who: Principal, row: Request) -> bool:
    """Whether this is the key of a program that answers its own run's gate (peers.md D4)."""
    is_program = bool(who.key_name) and who.user is None
    return is_program and row.run.kind == Run.Kind.WORKFLOW and who.owns(row.run.started_by)


def may_operate(who: Principal) -> bool:
    """Force release and withdraw; a person's key never exceeds the person."""
    if who.key_name and who.user is None:
        return who.has_scope("operate")
    return who.has_scope("operate") and who.has_perm("gates.change_request")


def may_withdraw(who: Principal, row: Request) -> bool:
    """Operators, and an outside program the question that it asked itself."""
    own = row.run.kind == Run.Kind.EXTERNAL and who.owns(row.asked_by)
    return may_operate(who) or (own and who.has_scope("start"))


def need_scope(who: Principal, scope: str) -> None:
    """Raise Forbidden for a key that was made without this scope."""
    if not who.has_scope(scope):
        raise Forbidden(f"This needs the scope {scope}.")


def _asked(who: Principal, row: Request) -> bool:
    askers = {row.asked_by, row.run.started_by}
    if who.user is not None and f"user:{who.user.pk}" in askers:
        return True
    if any(who.owns(asker) for asker in askers):
        return True
    # A key that somebody made for themselves asks in their name.
    names = [asker.split("/")[0][4:] for asker in askers if asker.startswith("key:")]
    keys = ApiKey.objects.filter(name__in=names, user__isnull=False)
    owners = set(keys.values_list("user_id", flat=True)) if names else set()
    return who.user is not None and who.user.pk in owners


def visible_grants(who: Principal) -> QuerySet[Grant]:
    """Standing grants: operators see all, others those for their runs and those they gave."""
    if not who.has_scope("read"):
        return Grant.objects.none()
    if may_operate(who):
        return Grant.objects.all()
    names = {who.actor, person_of(who)}
    return Grant.objects.filter(Q(principal__in=names) | Q(granted_by__in=names))


def grant_or_404(who: Principal, pk: UUID) -> Grant:
    """The grant, for somebody who may see it; NotVisible for everybody else."""
    found = visible_grants(who).filter(pk=pk).first()
    if found is None:
        raise NotVisible(f"There is no grant {pk} here.")
    return found


def need_revoke(who: Principal, grant: Grant) -> None:
    """Whoever sees a grant may end it; a key only one that answers or operates."""
    if not (who.has_scope("answer") or who.has_scope("operate")):
        raise Forbidden("This needs the scope answer or operate.")
