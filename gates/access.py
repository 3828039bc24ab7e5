"""Who may see, answer and rescue questions: the only file that decides it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet

from gates.models import ApiKey, Request
from gates.principals import Principal
from runs import statements
from runs.access import Forbidden, NotVisible
from runs.audiences import audiences_with
from runs.models import Run

__all__ = [
    "Forbidden",
    "NotVisible",
    "find",
    "may_answer",
    "may_operate",
    "may_see",
    "may_withdraw",
    "need_scope",
    "sees_all",
    "visible_requests",
    "why_not_answer",
]

_ANY_SCOPE: Final = ("read", "claim", "answer", "operate", "start")


def sees_all(who: Principal) -> bool:
    """People with the view permission, and keys that belong to nobody."""
    return who.has_perm("gates.view_request") or bool(who.key_name and who.user is None)


def visible_requests(who: Principal) -> QuerySet[Request]:
    """The questions this caller may see, as one query: its own to answer, and those of its runs."""
    if not any(who.has_scope(scope) for scope in _ANY_SCOPE):
        return Request.objects.none()
    if sees_all(who):
        return Request.objects.all()
    audiences = audiences_with(who.tokens)
    return Request.objects.filter(
        Q(audience__in=audiences)
        | Q(asked_by=who.actor)
        | Q(run__started_by=who.actor)
        | Q(run__audience__in=audiences)
    )


def runs_with_questions_for(audiences: list[int]) -> Q:
    """Whoever may answer a question of a workflow sees the run it belongs to."""
    asked = Request.objects.filter(audience__in=audiences).values("run")
    return Q(kind=Run.Kind.WORKFLOW, pk__in=asked)


def find(who: Principal, pk: UUID) -> Request:
    """The question, for somebody who may see it; NotVisible for everybody else."""
    for row in statements.rows(Request, pk=pk):
        if may_see(who, row):
            return row
    raise NotVisible(f"There is no question {pk} here.")


def may_see(who: Principal, row: Request) -> bool:
    """The rule of `visible_requests` for a question that is at hand: what is known comes first."""
    if not any(who.has_scope(scope) for scope in _ANY_SCOPE):
        return False
    if who.is_in(row.audience_id) or sees_all(who) or row.asked_by == who.actor:
        return True
    return row.run.started_by == who.actor or who.is_in(row.run.audience_id)


def may_answer(who: Principal, row: Request) -> bool:
    """Claim, release and answer: the question's audience, and nobody for another reason."""
    return not why_not_answer(who, row)


def why_not_answer(who: Principal, row: Request, *scopes: str) -> str:
    """What keeps this caller from answering, in words; empty when nothing does."""
    if not any(who.has_scope(scope) for scope in scopes or ("answer",)):
        return "The key has no scope for answering."
    if not who.is_in(row.audience_id):
        return "This question is for somebody else to answer."
    if row.routing.get("excludeRequester") and _asked(who, row):
        return "Whoever asked a question like this one cannot answer it."
    return ""


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
