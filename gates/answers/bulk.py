"""One answer to several like questions: each is checked, answered and recorded by itself.

Like are questions of one gate and version with the same form (peers.md B22). What cannot be
answered together is named with its reason and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from django.utils import timezone

from gates import access, services
from gates.access import Forbidden, NotVisible
from gates.errors import GateError
from gates.evidence.changes import Change, changes_between
from gates.evidence.masking import shown_to
from gates.lists.rows import question_line
from gates.models import Request
from gates.principals import Principal, actor_labels
from gates.receipts.next_steps import Receipt
from gates.reviews import rich
from gates.reviews.open_findings import open_findings
from runs.kernel.jsonable import JsonValueError, canonical_json
from runs.models import Step
from runs.pages import words
from runs.plaintext import visible

MAX_PICKED: Final = 100
MAX_DIFFERENCES: Final = 8
_CLOSED: Final = {
    Request.Status.ANSWERED: "it is answered",
    Request.Status.SUPERSEDED: "a newer question replaced it",
    Request.Status.EXPIRED: "its time is over",
    Request.Status.CANCELLED: "it was withdrawn, or its run was cancelled",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """One question of the selection; `differences` are the fields of its input unlike the first's.

    Of the first itself they are those in which any other is unlike it.
    """

    row: Request
    question_line: str
    place: str
    differences: list[Change] = field(default_factory=list)
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A question that is not answered with the others, and why."""

    picked: Picked
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What one answer would answer; `unseen` of the selection are not there for this reader."""

    items: list[Picked]
    left_out: list[LeftOut]
    unseen: int

    @property
    def first(self) -> Request | None:
        return self.items[0].row if self.items else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one question: its receipt, or why it was not answered."""

    picked: Picked
    receipt: Receipt | None = None
    why: str = ""


def preview(who: Principal, picked: Sequence[UUID]) -> Preview:
    """The selection in its own order, at most MAX_PICKED of it, sorted into like and left out."""
    wanted = list(dict.fromkeys(picked))[:MAX_PICKED]
    rows = {
        row.pk: row
        for row in Request.objects.select_related("run").filter(pk__in=wanted)
        if access.may_see(who, row)
    }
    seen = [rows[pk] for pk in wanted if pk in rows]
    holders = actor_labels(row.holder for row in seen)
    reported = _runs_with_findings(seen)
    first: Request | None = None
    items: list[Picked] = []
    left_out: list[LeftOut] = []
    for row in seen:
        why = _why_not(who, row, holders, reported) or _unlike(first, row)
        one = Picked(row=row, question_line=question_line(row.decision_text), place=_place(row))
        if why:
            left_out.append(LeftOut(picked=one, why=why))
        else:
            first = first or row
            items.append(one)
    return Preview(
        items=_with_differences(who, items), left_out=left_out, unseen=len(wanted) - len(seen)
    )


def _why_not(who: Principal, row: Request, holders: Mapping[str, str], reported: set[UUID]) -> str:
    if row.status in _CLOSED:
        return _CLOSED[Request.Status(row.status)]
    if row.expires_at is not None and row.expires_at <= timezone.now():
        return _CLOSED[Request.Status.EXPIRED]
    if refusal := access.why_not_answer(who, row, "claim", "answer"):
        return _in_line(refusal)
    if row.status == Request.Status.CLAIMED and row.holder != who.actor:
        return f"{holders[row.holder]} holds it"
    if row.needed > 1:
        return f"it needs the answers of {row.needed} people"
    if rich.is_rich(row.response_schema):
        return "its answer has a page of its own"
    if row.kind == Request.Kind.APPROVAL:
        return "it approves one action, which is read and decided by itself"
    if row.run_id in reported and open_findings(row):
        return "it passed with open findings, which want a tick of their own"
    return ""


def _unlike(first: Request | None, row: Request) -> str:
    if first is None:
        return ""
    if (row.gate_id, row.gate_version) != (first.gate_id, first.gate_version):
        return f"it is another question than the first: {visible(row.gate_id)[:80]}"
    if _form_of(row) != _form_of(first):
        return "its form is unlike the first's"
    return ""


def _form_of(row: Request) -> tuple[str, Any]:
    """What the form of a question is made of; with a target a no wants a note."""
    return canonical_json(row.response_schema), row.routing.get("target")


def _place(row: Request) -> str:
    step = row.step_path[-1] if row.step_path else row.gate_id
    return visible(words.BETWEEN.join([row.run.workflow or row.run.stream, step]))


def _in_line(text: str) -> str:
    """A refusal as the end of a sentence."""
    text = text.rstrip(".")
    return text[:1].lower() + text[1:]


def _runs_with_findings(rows: Iterable[Request]) -> set[UUID]:
    """The runs in which any step passed with open findings: most have none, and are not asked."""
    steps = Step.objects.filter(
        run__in={row.run_id for row in rows}, outcome__contains='"openFindings"'
    )
    return set(steps.values_list("run_id", flat=True))


def _with_differences(who: Principal, items: list[Picked]) -> list[Picked]:
    if not items:
        return []
    first = shown_to(who, items[0].row).input
    told: dict[str, Change] = {}
    rest = []
    for one in items[1:]:
        changes = changes_between(first, shown_to(who, one.row).input)
        for change in changes:
            told.setdefault(change.path, Change(change.path, None, change.before))
        rest.append(_cut(one, changes))
    return [_cut(items[0], list(told.values())), *rest]


def _cut(one: Picked, changes: list[Change]) -> Picked:
    shown = [
        Change(visible(change.path)[:200], _short(change.before), _short(change.after))
        for change in changes[:MAX_DIFFERENCES]
    ]
    return replace(one, differences=shown, more=max(0, len(changes) - MAX_DIFFERENCES))


def _short(value: str | None) -> str | None:
    return value if value is None or len(value) <= 200 else f"{value[:200]}…"


def answer(
    who: Principal, items: Sequence[Picked], digests: Mapping[UUID, str], response: Any
) -> list[Result]:
    """Give this answer to each of them through the one door of answers; one fails, the rest go on.

    `digests` says by which digest each was shown: a question that changed since is not answered.
    """
    return [_answered(who, one, digests.get(one.row.pk, ""), response) for one in items]


def _answered(who: Principal, one: Picked, digest: str, response: Any) -> Result:
    try:
        receipt = services.submit(
            one.row.pk, principal=who, token=None, digest=digest, response=response
        )
    except (GateError, Forbidden, NotVisible, JsonValueError) as refusal:
        return Result(picked=one, why=str(refusal))
    return Result(picked=one, receipt=receipt)
