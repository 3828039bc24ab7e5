"""A question beside the one it replaces: what of it changed, and what was answered then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Self

from gates import access
from gates.evidence.changes import Change, changes_between
from gates.evidence.masking import pointers_for
from gates.lists.rows import decision_label
from gates.models import Request, Response
from gates.principals import Principal, actor_label
from runs.models import Run
from runs.plaintext import visible

# How many runs back a question is looked for that a run again asks anew.
MAX_RUNS: Final = 5
_NUMBERS: Final = (
    *("no", "one", "two", "three", "four", "five"),
    *("six", "seven", "eight", "nine", "ten"),
)
_UNANSWERED: Final = {
    Request.Status.EXPIRED: "a question that nobody answered in time",
    Request.Status.CANCELLED: "a question that was withdrawn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences to the previous asking of the gate, in what the digest covers."""

    before: Request
    # In another run: this one runs the same again.
    elsewhere: bool
    about: Sequence[Change]
    text: Change | None
    schema: Sequence[Change]
    version: Change | None
    answered_at: datetime | None
    answered_by: str
    answer: str

    def without(self, places: Sequence[Change]) -> Self:
        """The same with only these places of the input."""
        return replace(self, about=places)

    @property
    def count(self) -> int:
        """How many places differ."""
        alone = (self.text is not None) + (self.version is not None)
        return len(self.about) + len(self.schema) + alone

    @property
    def lead(self) -> str:
        """Which question it replaces; the time of its answer follows."""
        does = "This asks again, in another run," if self.elsewhere else "This replaces"
        if not self.answered_by:
            status = Request.Status(self.before.status)
            return f"{does} {_UNANSWERED.get(status, 'a question that nobody answered')}"
        return f"{does} a question that {self.answered_by} answered on"

    @property
    def tail(self) -> str:
        """What changed, counted."""
        told = []
        if self.about:
            many = "field" if len(self.about) == 1 else "fields"
            told.append(f"{_number(len(self.about))} {many} changed")
        if self.text is not None:
            told.append("its text changed")
        if self.schema:
            told.append("the form of the answer changed")
        if self.version is not None:
            told.append("its version changed")
        return ", ".join(told) or "nothing of it changed"


def comparison_of(who: Principal, row: Request) -> Comparison | None:
    """The question beside its previous asking, where this reader may see that one too."""
    before = asked_before(row)
    if before is None or not access.may_see(who, before):
        return None
    hidden = {*pointers_for(who, before), *pointers_for(who, row)}
    answer = Response.objects.filter(request=before).order_by("-seq").first()
    answered = before.status == Request.Status.ANSWERED and answer is not None
    by = "" if answer is None or not answered else answer.actor
    return Comparison(
        before=before,
        elsewhere=before.run_id != row.run_id,
        about=changes_between(before.input, row.input, hidden),
        text=next(iter(changes_between(before.decision_text, row.decision_text)), None),
        schema=changes_between(before.response_schema, row.response_schema),
        version=next(iter(changes_between(before.gate_version, row.gate_version)), None),
        answered_at=None if answer is None or not answered else answer.at,
        answered_by="you" if by == who.actor else visible(actor_label(by)) if by else "",
        answer="" if answer is None or not answered else visible(decision_label(answer.response)),
    )


def asked_before(row: Request) -> Request | None:
    """The previous asking of the same gate: in the run, else in the run that this one repeats."""
    asked = Request.objects.select_related("run").filter(gate_id=row.gate_id)
    earlier = asked.filter(run=row.run_id, asked_seq__lt=row.asked_seq)
    found = earlier.order_by("-asked_seq").first()
    run: Run | None = row.run
    for _ in range(MAX_RUNS):
        if found is not None or run is None or run.rerun_of_id is None:
            return found
        found = asked.filter(run=run.rerun_of_id).order_by("-asked_seq").first()
        run = run.rerun_of
    return found


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)
