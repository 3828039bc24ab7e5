"""A question as one line of a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from gates import access
from gates.actions import cards
from gates.answers.tally_rows import counts_of
from gates.models import Request, Response
from gates.principals import Principal, actor_labels
from gates.reviews import rich
from runs.plaintext import first_line, visible

_SOON: Final = timedelta(hours=2)
LINE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """What a list shows of a question; texts are a stranger's and go through escaping."""

    id: UUID
    url: str
    question_line: str
    status: str
    claim_state: str
    holder: str
    holder_label: str
    claimed_at: datetime | None
    answered_by: str
    decision_label: str
    kind: str
    kind_label: str
    workflow: str
    step: str
    run_id: UUID
    run_short: str
    starter: str
    fingerprint: str
    priority: int
    due_at: datetime | None
    asked_at: datetime
    changed_at: datetime
    urgency: str
    quorum: str
    can_force_release: bool
    # Whether it can be selected to be answered with others; the preview looks closer.
    can_pick: bool


def rows_for(
    principal: Principal, requests: Sequence[Request], audiences: Iterable[int] | None = None
) -> list[InboxRow]:
    """The lines of these questions, for this reader; three statements at most for all of them.

    `audiences` are those that the reader is in, where they are known.
    """
    answered = [row.pk for row in requests if row.status == Request.Status.ANSWERED]
    answers: dict[UUID, Any] = dict(
        Response.objects.filter(request__in=answered).values_list("request_id", "response")
        if answered
        else ()
    )
    labels = actor_labels(
        actor
        for row in requests
        for actor in (row.holder, row.answered_by, row.run.started_by, row.asked_by)
    )
    rescues = access.may_operate(principal)
    now = timezone.now()
    if audiences is None and requests:
        audiences = access.answerable_audiences(principal)
    theirs = set(audiences or ())
    made = [
        _row(principal, row, labels, answers.get(row.pk), now, rescues, theirs) for row in requests
    ]
    counts = counts_of(requests)
    return [replace(row, quorum=counts[row.id]) if row.id in counts else row for row in made]


def _row(
    principal: Principal,
    row: Request,
    labels: Mapping[str, str],
    answer: Any,
    now: datetime,
    rescues: bool,
    audiences: set[int],
) -> InboxRow:
    state = claim_state(principal, row)
    return InboxRow(
        id=row.pk,
        url=row.get_absolute_url(),
        question_line=question_line(row.decision_text),
        status=row.status,
        claim_state=state,
        holder=row.holder,
        holder_label=labels[row.holder],
        claimed_at=row.claimed_at,
        answered_by=labels[row.answered_by] if row.answered_by else "",
        decision_label=visible(decision_label(answer))
        if row.status == Request.Status.ANSWERED
        else "",
        kind=row.kind,
        kind_label="allow" if cards.is_action(row) else kind_label(row.response_schema),
        workflow=visible(row.run.workflow or row.run.stream),
        step=visible(row.step_path[-1] if row.step_path else row.gate_id),
        run_id=row.run_id,
        run_short=row.run.short,
        starter=labels[row.asked_by] if row.asked_by else "",
        fingerprint=row.fingerprint,
        priority=row.priority,
        due_at=row.due_at or row.expires_at,
        asked_at=row.created_at,
        changed_at=row.changed_at,
        urgency=urgency(row, now),
        quorum="",
        can_force_release=rescues and state == "other",
        can_pick=state in ("free", "you") and row.audience_id in audiences,
    )


def claim_state(principal: Principal, row: Request) -> str:
    """Who stands at the question, seen by this reader: free, you, other, answered or closed."""
    if row.status == Request.Status.PENDING:
        return "free"
    if row.status == Request.Status.CLAIMED:
        return "you" if row.holder == principal.actor else "other"
    return "answered" if row.status == Request.Status.ANSWERED else "closed"


def urgency(row: Request, now: datetime) -> str:
    """`overdue`, `soon` within two hours, or nothing."""
    ends = row.due_at or row.expires_at
    if ends is None or not row.is_open:
        return ""
    if ends <= now:
        return "overdue"
    return "soon" if ends <= now + _SOON else ""


def question_line(text: str) -> str:
    """The first line of a question without its Markdown, for a list or a page's title."""
    return first_line(text, LINE) or visible(text.strip())[:LINE]


def kind_label(schema: Any) -> str:
    """What the question wants of a person, in one word or two."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not properties:
        return "fill in"
    if is_verdict(properties.get("approved")):
        return "approve"
    if rich.is_review(schema):
        return "review"
    declared = [item for item in properties.values() if isinstance(item, dict)]
    if any("enum" in item or item.get("type") == "boolean" for item in declared):
        return "choose"
    return "fill in"


def is_verdict(declared: Any) -> bool:
    """Whether the declared field is a yes or no."""
    return isinstance(declared, dict) and declared.get("type") == "boolean"


def decision_label(answer: Any) -> str:
    """The answer in a word, where it has one."""
    if not isinstance(answer, dict):
        return ""
    if isinstance(answer.get("approved"), bool):
        return "approved" if answer["approved"] else "refused"
    if decided := cards.decision_words(answer):
        return decided
    if verdict := rich.verdict_of(answer):
        return {"yes": "approved", "no": "changes requested"}[verdict]
    if said := rich.words_of(answer):
        return said[:60]
    words = [value for value in _scalars(answer.values()) if value]
    return words[0][:60] if words else "answered"


def _scalars(values: Iterable[Any]) -> list[str]:
    shown = []
    for value in values:
        if isinstance(value, bool):
            shown.append("yes" if value else "no")
        elif isinstance(value, str | int | float):
            shown.append(str(value))
    return shown
