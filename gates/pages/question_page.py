"""What the pages of questions show, made from the plain data of the queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.urls import reverse

from gates import queries
from gates.actions import cards, typed_questions
from gates.answers.standing import Standing, standing_of
from gates.evidence.compare import Comparison
from gates.evidence.files import Evidence, evidence_of
from gates.evidence.masking import shown_to
from gates.forms import AnswerForm
from gates.models import Request
from gates.pages import details, outcome_words, subject
from gates.pages.details import GateDetail
from gates.principals import Principal
from gates.reviews import diffs, rich
from gates.reviews.open_findings import open_findings
from gates.reviews.review_form import form_for
from runs.access import may_operate, visible_runs
from runs.inputs.formfields import pretty
from runs.pages import words
from runs.plaintext import visible
from runs.turns import folding

# A copy button carries its text in the page.
MAX_COPIED: Final = 100_000
_ROUND: Final = frozenset({"/attempt", "/about/attempt"})
_STATUS_WORDS: Final = {
    "answer": "yours to answer",
    "claim": "waits for an answer",
    "look": "waits for an answer",
    "kept": "kept, its run was cancelled",
}
_CLOSED_WORDS: Final = {
    Request.Status.SUPERSEDED: "This question was replaced by a newer one.",
    Request.Status.EXPIRED: "Its time was over before anybody answered.",
}
# What follows when nobody answers, beside the time.
_AT_THE_END: Final[Mapping[str, str]] = {
    "reject": ", then it counts as refused",
    "answer": ", then its default answer counts",
    "escalate": ", then others are asked",
    "stay-open": " and stays open after that",
}


@dataclass(kw_only=True)
class GatePage:
    """One question as the templates read it."""

    detail: GateDetail
    form: AnswerForm
    mode: str
    banner: Mapping[str, str] | None = None
    conflict: Mapping[str, Any] | None = None
    refusal: str = ""
    # What somebody wrote who hands the question on, when that was refused.
    handed: Mapping[str, str] | None = None
    typed_note: str = ""
    receipt: Mapping[str, Any] | None = None
    summary: list[subject.Fact] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    findings_seen: bool = False
    diff: diffs.DiffPage | None = None
    wanted: list[rich.Wanted] = field(default_factory=list)
    action: cards.ActionCard | None = None
    standing: Standing = field(default_factory=Standing)
    expires_words: str = ""
    # Empty where the reader may see the question and not its run.
    run_url: str = ""

    @property
    def pk(self) -> Any:
        return self.detail.row.pk

    id = pk

    @property
    def kept(self) -> bool:
        return self.detail.mode == "kept"

    @property
    def decision_text(self) -> str:
        return self.detail.row.decision_text

    @property
    def question_line(self) -> str:
        return visible(self.detail.question_line)

    @property
    def status(self) -> str:
        """The tone: an answered question has that of its answer."""
        given = self.detail.given
        if given is None or given.verdict != "no":
            return self.detail.row.status
        goes_back = self.detail.outcomes.on_no or rich.verdict_of(given.response)
        return "sent_back" if goes_back else "refused"

    @property
    def status_word(self) -> str:
        if self.detail.mode == "held":
            return f"held by {self.detail.holder_label}"
        if self.detail.given is not None:
            return outcome_words.decision(self.detail).lower()
        return _STATUS_WORDS.get(self.detail.mode, self.detail.row.status)

    @property
    def run(self) -> Mapping[str, Any]:
        run = self.detail.run
        return {"url": self.run_url, "short": run.short}

    @property
    def breadcrumb(self) -> str:
        run, row = self.detail.run, self.detail.row
        place = row.step_path[1::2] or row.step_path[-1:] or [row.gate_id]
        return visible(words.BETWEEN.join([run.workflow or run.stream, *place]))

    @property
    def quorum(self) -> str:
        return self.standing.quorum if self.detail.row.is_open else ""

    @property
    def round(self) -> str:
        return str(self.detail.attempt) if self.detail.attempt > 1 else ""

    @property
    def asked_at(self) -> datetime:
        return self.detail.row.created_at

    @property
    def asked_by(self) -> str:
        return self.detail.asker_label

    @property
    def due_at(self) -> datetime | None:
        """The deadline, while there is something to be late with."""
        return self.detail.row.due_at if self.detail.row.is_open else None

    @property
    def fingerprint(self) -> str:
        return self.detail.row.fingerprint

    @property
    def digest(self) -> str:
        return self.detail.row.digest

    @property
    def covers(self) -> tuple[str, ...]:
        return self.detail.covers

    @property
    def changes(self) -> list[Any]:
        """What differs from the last asking; the round itself is told in the header."""
        return [
            change
            for change in self.detail.changes
            if change.path not in _ROUND and not rich.is_apart(self.detail.row, change.path)
        ]

    @property
    def comparison(self) -> Comparison | None:
        """The question beside the one it replaces."""
        found = self.detail.comparison
        return None if found is None else found.without(self.changes)

    @property
    def raw_json(self) -> Any:
        shown = self.detail.shown.input
        return (
            shown if self.raw_text or self.diff is None else rich.in_short(self.detail.row, shown)
        )

    @cached_property
    def raw_text(self) -> str:
        text = pretty(self.detail.shown.input)
        return text if len(text) <= MAX_COPIED else ""

    @property
    def on_yes(self) -> str:
        return outcome_words.on_yes(self.detail)

    @property
    def on_no(self) -> str:
        return outcome_words.on_no(self.detail)

    @property
    def rounds_left(self) -> int | None:
        outcomes = self.detail.outcomes
        return outcomes.rounds_left if outcomes.on_no and outcomes.rounds_left else None

    @property
    def holder_label(self) -> str:
        return self.detail.holder_label

    @property
    def claimed_at(self) -> datetime | None:
        return self.detail.row.claimed_at

    @property
    def claim_token(self) -> str:
        return self.detail.claim_token

    @property
    def who_may_answer(self) -> list[str]:
        return self.detail.who_may_answer

    @property
    def timeline(self) -> list[Any]:
        return self.detail.timeline

    @property
    def permissions(self) -> Any:
        return self.detail.permissions

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        run = self.detail.run
        waits = "cancelled" if run.is_final else run.status if run.status == "paused" else "waiting"
        return [
            {
                "name": visible(step.name),
                "status": waits if step.status == "waiting" else step.status,
                "url": self.run_url,
                "current": step.current,
            }
            for step in self.detail.steps
        ]

    @property
    def closed_text(self) -> str:
        row = self.detail.row
        if row.closed_reason and row.status == Request.Status.CANCELLED:
            return f"This question was withdrawn: {row.closed_reason}"
        if row.closed_reason and row.status == Request.Status.EXPIRED:
            return f"This question {row.closed_reason}."
        return _CLOSED_WORDS.get(
            Request.Status(row.status), "This question is closed and takes no answer."
        )


def gate_page(
    who: Principal,
    pk: Any,
    form: AnswerForm | None = None,
    look: Mapping[str, str] | None = None,
) -> GatePage:
    """The page of one question for one reader, with its form empty or as it was sent.

    `look` is how a change is shown: its `view`, and the `file` it begins with.
    """
    detail = details.detail(who, pk)
    row = detail.row
    given = detail.given
    standing = standing_of(who, row, holds=detail.permissions.release)
    files = subject.files_of(detail.shown)
    sees_run = visible_runs(who).filter(pk=row.run_id).exists()
    run_url = detail.run.get_absolute_url() if sees_run else ""
    if form is None:
        form = form_for(
            row, given=None if given is None else given.response, shown=detail.shown.input
        )
    return GatePage(
        detail=detail,
        form=form,
        mode=_mode(detail, standing),
        standing=standing,
        banner=_banner(detail),
        receipt=None if given is None else _receipt(who, detail, run_url),
        run_url=run_url,
        summary=subject.summary_of(detail.shown, files),
        evidence=evidence_of(detail.shown) if sees_run else [],
        findings=open_findings(row) if row.is_open or detail.mode == "kept" else [],
        expires_words=_expires(row),
        action=_action(detail),
        wanted=rich.wanted_before(who, row),
        diff=diffs.page_of(
            row, detail.shown.input, look or {}, form, None if given is None else given.response
        ),
    )


def _mode(detail: GateDetail, standing: Standing) -> str:
    """Which decision card fits; of several people each answers without a claim."""
    is_free = detail.mode in ("claim", "kept")
    if standing.mine is not None and detail.mode != "closed":
        return "answered"
    if standing.barred and is_free:
        return "look"
    if detail.mode == "kept" or (standing.is_shared and is_free):
        return "answer"
    return detail.mode


def _action(detail: GateDetail) -> cards.ActionCard | None:
    row = detail.row
    if not cards.is_action(row):
        return None
    return cards.card_of(row, detail.shown, folding.state_at(row.run_id, row.run.last_seq))


def empty_form(row: Request, data: Any = None, who: Principal | None = None) -> AnswerForm:
    """The question's form, with what was sent."""
    return form_for(row, data, shown=row.input if who is None else shown_to(who, row).input)


def _banner(detail: GateDetail) -> Mapping[str, str] | None:
    row = detail.row
    if detail.superseded_by is not None:
        return {
            "kind": "changed",
            "text": "The subject changed: a newer question replaced this one.",
            "url": detail.superseded_by.get_absolute_url(),
            "link": "Open the newer question",
        }
    if detail.mode == "kept":
        text = (
            "The run was cancelled and its question kept. "
            "An answer is recorded and starts nothing; the run takes it if somebody resumes it."
        )
        return {"kind": "changed", "text": text}
    if row.status == Request.Status.SUPERSEDED:
        return {"kind": "changed", "text": "The work was sent back; this question is asked anew."}
    return None


def _receipt(who: Principal, detail: GateDetail, run_url: str) -> Mapping[str, Any]:
    given = detail.given
    assert given is not None
    run = detail.run
    kind, text, resume = "recorded", "Recorded.", ""
    if given.next == "resumed":
        kind, text = "resumed", outcome_words.resumed(detail)
    elif isinstance(given.next, Mapping):
        kind, text = "resumes", "Recorded. The run resumes at"
    elif cards.is_action(detail.row) and run.status == run.Status.WAITING:
        kind, text = "recorded", "Recorded. The step goes on when its other calls are decided."
    elif run.kind == run.Kind.WORKFLOW:
        kind, text = "waits", "Recorded. The run waits for somebody to resume it."
        stopped = run.status in (run.Status.PAUSED, run.Status.CANCELLED)
        if stopped and may_operate(who, run):
            resume = reverse("runs:run-resume", args=[run.pk])
    following = next((row for row in queries.open_for(who, 2) if row.pk != detail.row.pk), None)
    return {
        "decision": outcome_words.decision(detail),
        "verdict": given.verdict,
        "note": visible(given.note),
        "response_json": given.response,
        "answers": typed_questions.answered(detail.row, given.response),
        "actor_label": given.actor_label,
        "at": given.at,
        "seq": given.seq,
        "fingerprint": detail.row.fingerprint,
        "next_kind": kind,
        "next_text": text,
        "next_at": _later(given.next),
        "next_url": run_url,
        "resume_form_url": resume,
        "next_item_url": following.get_absolute_url() if following is not None else "",
    }


def _later(following: Any) -> datetime | None:
    """When the run resumes, where a time is set."""
    later = following.get("resumesAt") if isinstance(following, Mapping) else None
    return datetime.fromisoformat(later) if later else None


def _expires(row: Request) -> str:
    if row.expires_at is None or not row.is_open:
        return ""
    follows = _AT_THE_END.get(row.routing.get("onExpiry", ""), "")
    return f"expires {row.expires_at:%-d %b %Y, %H:%M} UTC{follows}"
