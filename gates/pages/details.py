"""Everything a page shows of one question, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from gates import access, columns
from gates.actions import cards
from gates.evidence.changes import Change
from gates.evidence.compare import Comparison, comparison_of
from gates.evidence.masking import shown_to
from gates.lists.rows import claim_state, decision_label, question_line, urgency
from gates.models import Request, Response
from gates.pages.timeline import TimelineEvent, timeline
from gates.principals import Principal, actor_labels
from gates.projection import is_closed
from gates.receipts.next_steps import Next, next_of
from gates.receipts.sealed import need_unchanged
from gates.reviews import rich
from runs.claims import claim_mark, claim_token
from runs.kernel.state import RunState
from runs.models import AudienceToken, Run, Step
from runs.plaintext import visible
from runs.turns import folding

COVERS: Final = ("the question's text", "what it is about", "the form of the answer", "its version")
_WHO: Final = {
    "user": "",
    "group": "team ",
    "perm": "whoever has ",
    "key": "key ",
    "router": "service ",
}


@dataclass(frozen=True, slots=True)
class StepOfStrip:
    """One step of the run, for the strip above a question."""

    name: str
    status: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What a yes and a no lead to, and how often work may still be sent back."""

    on_yes: list[str] = field(default_factory=list)
    on_no: str = ""
    rounds_left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The answer that was recorded, and what it led to."""

    response: Any
    decision: str
    verdict: str
    note: str
    actor: str
    actor_label: str
    at: datetime
    surface: str
    seq: int
    next: Next


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What this reader may do now."""

    claim: bool
    answer: bool
    release: bool
    force_release: bool
    withdraw: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDetail:
    """One question for one reader. Texts are a stranger's; `claim_token` is only the holder's."""

    row: Request
    # The same with what this reader may not read masked.
    shown: Request
    run: Run
    mode: str
    question_line: str
    claim_state: str
    claim_token: str
    holder_label: str
    asker_label: str
    urgency: str
    attempt: int
    run_cancelled: bool
    steps: list[StepOfStrip]
    timeline: list[TimelineEvent]
    changes: list[Change]
    comparison: Comparison | None
    outcomes: Outcomes
    who_may_answer: list[str]
    given: Given | None
    permissions: Permissions
    superseded_by: Request | None
    covers: tuple[str, ...] = COVERS


def detail(principal: Principal, pk: UUID) -> GateDetail:
    """The question as this reader may see it; NotVisible when it is not theirs to see."""
    row = access.find(principal, pk)
    need_unchanged(row)
    state = folding.state_at(row.run_id, row.run.last_seq)
    answer = _final(row)
    labels = actor_labels(
        [row.holder, row.asked_by, row.answered_by, *([answer.actor] if answer else [])]
    )
    cancelled = is_closed(state)
    permissions = _permissions(principal, row)
    comparison = comparison_of(principal, row)
    return GateDetail(
        row=row,
        shown=shown_to(principal, row),
        run=row.run,
        mode=_mode(row, permissions, kept=_is_kept(row, cancelled)),
        question_line=question_line(row.decision_text),
        claim_state=claim_state(principal, row),
        claim_token=_token(principal, row, state),
        holder_label=labels[row.holder],
        asker_label=labels[row.asked_by],
        urgency=urgency(row, timezone.now()),
        attempt=_whole(row.routing.get("attempt"), 1),
        run_cancelled=cancelled,
        steps=_steps(row),
        timeline=timeline(row),
        changes=[] if comparison is None else list(comparison.about),
        comparison=comparison,
        outcomes=outcomes_of(row.routing),
        who_may_answer=who_may_answer(row),
        given=None if answer is None else _given(row, answer, labels, next_of(row, row.run, state)),
        permissions=permissions,
        superseded_by=_newer(row),
    )


def outcomes_of(routing: Mapping[str, Any]) -> Outcomes:
    """What the record says a yes and a no lead to."""
    yes = routing.get("onYes")
    left = routing.get("sendBacksLeft")
    target = routing.get("target")
    return Outcomes(
        on_yes=[name for name in yes if isinstance(name, str)] if isinstance(yes, list) else [],
        on_no=target if isinstance(target, str) else "",
        rounds_left=left if isinstance(left, int) and not isinstance(left, bool) else None,
    )


def who_may_answer(row: Request) -> list[str]:
    """The question's audience in words; people by their names."""
    tokens = list(
        AudienceToken.objects.filter(audience=row.audience_id)
        .order_by("token")
        .values_list("token", flat=True)
    )
    people = {
        f"user:{user.username}": visible(user.get_full_name() or user.username)
        for user in User.objects.filter(
            username__in=[token[5:] for token in tokens if token.startswith("user:")]
        )
    }
    return [people.get(token) or _token_words(token) for token in tokens]


def _token_words(token: str) -> str:
    kind, _, name = token.partition(":")
    return visible(f"{_WHO.get(kind, '')}{name}") if name else "everyone who is signed in"


def _permissions(principal: Principal, row: Request) -> Permissions:
    answers = access.may_answer(principal, row)
    holds = row.holder == principal.actor
    operates = access.may_operate(principal)
    is_held = row.status == Request.Status.CLAIMED
    is_kept = row.status == Request.Status.CANCELLED and not row.closed_reason
    return Permissions(
        claim=answers and (row.status == Request.Status.PENDING or is_kept),
        answer=answers and (row.status == Request.Status.PENDING or holds or is_kept),
        release=answers and holds and is_held,
        force_release=operates and is_held and not holds,
        withdraw=(row.is_open or is_kept) and access.may_withdraw(principal, row),
    )


def _is_kept(row: Request, cancelled: bool) -> bool:
    """The run was cancelled and its question stays answerable, as an explicit act (design D5)."""
    return cancelled and row.status == Request.Status.CANCELLED and not row.closed_reason


def _mode(row: Request, permissions: Permissions, *, kept: bool) -> str:
    """Which decision card fits: answer, claim, held, look, kept or closed."""
    if not row.is_open:
        return "kept" if kept and permissions.answer else "closed"
    if permissions.release:
        return "answer"
    if row.status == Request.Status.CLAIMED:
        return "held"
    return "claim" if permissions.claim else "look"


def _token(principal: Principal, row: Request, state: RunState) -> str:
    """The token of the reader's own claim, derived anew for the form."""
    if row.claim_seq is None or row.holder != principal.actor:
        return ""
    request_id = columns.true_id(row, state.callbacks.requests)
    return claim_token(row.run_id, request_id, claim_mark(row.claim_seq), row.holder)


def _steps(row: Request) -> list[StepOfStrip]:
    """The run's steps at the level of the one that asks."""
    parent = row.step_path[:-1]
    steps = Step.objects.filter(run=row.run_id, parent=parent).order_by("position")
    return [StepOfStrip(step.name, step.status, step.path == row.step_path) for step in steps[:200]]


def _asked_before(row: Request) -> Request | None:
    """The previous asking of the same gate in the run."""
    return (
        Request.objects.filter(run=row.run_id, gate_id=row.gate_id, asked_seq__lt=row.asked_seq)
        .order_by("-asked_seq")
        .first()
    )


def _newer(row: Request) -> Request | None:
    if not row.superseded_by:
        return None
    return Request.objects.filter(run=row.run_id, request_id=row.superseded_by).first()


def _final(row: Request) -> Response | None:
    """The answer that its asker got; those of several people come before it."""
    if row.status != Request.Status.ANSWERED:
        return None
    return Response.objects.filter(request=row).order_by("seq").last()


def _given(row: Request, answer: Response, labels: Mapping[str, str], following: Next) -> Given:
    response = answer.response
    approved = response.get("approved") if isinstance(response, dict) else None
    note = response.get("note") if isinstance(response, dict) else None
    return Given(
        response=response,
        decision=decision_label(response),
        verdict={True: "yes", False: "no"}[approved]
        if isinstance(approved, bool)
        else cards.verdict_of(response) or rich.verdict_of(response),
        note=note if isinstance(note, str) else rich.words_of(response),
        actor=answer.actor,
        actor_label=labels[answer.actor],
        at=answer.at,
        surface=answer.surface,
        seq=answer.seq,
        next=following,
    )


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
