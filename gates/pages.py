"""What the pages of questions show, made from the plain data of the queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.urls import reverse
from django.utils.http import urlencode

from gates import details, queries
from gates.details import GateDetail
from gates.forms import AnswerForm
from gates.models import Request
from gates.principals import Principal
from runs import words
from runs.formfields import pretty
from runs.kernel.jsonable import canonical_json
from runs.models import Artifact
from runs.plaintext import visible

LONG: Final = 160
TAB_LABELS: Final = {
    "unclaimed": "Unclaimed",
    "mine": "Mine",
    "others": "Claimed by others",
    "asked": "Waiting on others",
    "history": "History",
}
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


@dataclass(kw_only=True)
class GatePage:
    """One question as the templates read it."""

    detail: GateDetail
    form: AnswerForm
    mode: str
    banner: Mapping[str, str] | None = None
    conflict: Mapping[str, Any] | None = None
    refusal: str = ""
    typed_note: str = ""
    receipt: Mapping[str, Any] | None = None
    summary: list[Mapping[str, Any]] = field(default_factory=list)
    evidence: list[Mapping[str, Any]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    quorum: str = ""
    expires_words: str = ""

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
        return self.detail.row.status

    @property
    def status_word(self) -> str:
        if self.detail.mode == "held":
            return f"held by {self.detail.holder_label}"
        return _STATUS_WORDS.get(self.detail.mode, self.detail.row.status)

    @property
    def run(self) -> Mapping[str, Any]:
        run = self.detail.run
        return {"url": run.get_absolute_url(), "short": run.short}

    @property
    def breadcrumb(self) -> str:
        run, row = self.detail.run, self.detail.row
        place = row.step_path[1::2] or [row.gate_id]
        return visible(" > ".join([run.workflow or run.stream, *place]))

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
        return self.detail.row.due_at

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
        return self.detail.changes

    @property
    def raw_json(self) -> Any:
        return self.detail.row.input

    @property
    def raw_text(self) -> str:
        return pretty(self.detail.row.input)

    @property
    def on_yes(self) -> str:
        names = self.detail.outcomes.on_yes
        if self.detail.row.routing.get("purpose") != "approval":
            return ""
        return (
            f"{_listed(names)} {'starts' if len(names) == 1 else 'start'}"
            if names
            else ("the run goes on")
        )

    @property
    def on_no(self) -> str:
        outcomes = self.detail.outcomes
        if self.detail.row.routing.get("purpose") != "approval":
            return ""
        if not outcomes.on_no:
            return "the step fails with your note"
        if outcomes.rounds_left == 0:
            return "the step fails with your note; no round is left"
        return f"back to {outcomes.on_no} with your note"

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
        url = self.detail.run.get_absolute_url()
        return [
            {"name": visible(step.name), "status": step.status, "url": url, "current": step.current}
            for step in self.detail.steps
        ]

    @property
    def closed_text(self) -> str:
        row = self.detail.row
        if row.closed_reason and row.status == Request.Status.CANCELLED:
            return f"This question was withdrawn: {row.closed_reason}"
        return _CLOSED_WORDS.get(
            Request.Status(row.status), "This question is closed and takes no answer."
        )


def gate_page(who: Principal, pk: Any, form: AnswerForm | None = None) -> GatePage:
    """The page of one question for one reader, with its form empty or as it was sent."""
    detail = details.detail(who, pk)
    row = detail.row
    given = detail.given
    if form is None:
        form = AnswerForm(
            row.response_schema,
            routing=row.routing,
            presentation=row.presentation,
            given=None if given is None else given.response,
        )
    return GatePage(
        detail=detail,
        form=form,
        mode="answer" if detail.mode == "kept" else detail.mode,
        banner=_banner(detail),
        receipt=None if given is None else _receipt(who, detail),
        summary=summary_of(row),
        evidence=evidence_of(row),
        expires_words=_expires(row),
    )


def empty_form(row: Request, data: Any = None) -> AnswerForm:
    """The question's form, with what was sent."""
    return AnswerForm(row.response_schema, data, routing=row.routing, presentation=row.presentation)


def summary_of(row: Request) -> list[Mapping[str, Any]]:
    """What the decision covers as labels and values: the author's choice, else the input's keys."""
    wanted = row.presentation.get("summary") if isinstance(row.presentation, dict) else None
    chosen = [
        (str(item["label"]), _at(row.input, str(item["pointer"])))
        for item in (wanted if isinstance(wanted, list) else ())
        if isinstance(item, dict) and {"label", "pointer"} <= item.keys()
    ]
    if not chosen and isinstance(row.input, dict):
        chosen = list(row.input.items())
    elif not chosen and row.input is not None:
        chosen = [("about", row.input)]
    return [_fact(label, value) for label, value in chosen[:60] if value is not None]


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _fact(label: str, value: Any) -> Mapping[str, Any]:
    label = visible(label)
    if isinstance(value, dict | list):
        return {"label": label, "value": value, "is_json": True}
    text = value if isinstance(value, str) else canonical_json(value)
    text = visible(text)
    return {"label": label, "value": text, "is_long": len(text) > LONG or "\n" in text}


def evidence_of(row: Request) -> list[Mapping[str, Any]]:
    """The run's files that the question's input names by their digest."""
    named = set(_digests(row.input))
    if not named:
        return []
    found = Artifact.objects.filter(run=row.run_id, digest__in=named).order_by("seq")
    latest = {(artifact.digest, artifact.name): artifact for artifact in found}
    return [
        {
            "label": visible(artifact.name),
            "value": artifact.digest,
            "size": words.size(artifact.size),
            "url": reverse("runs:artifact", args=[row.run_id, artifact.digest]),
        }
        for artifact in latest.values()
    ]


def _digests(value: Any) -> Iterable[str]:
    if isinstance(value, str) and value.startswith("sha256:") and len(value) == 71:
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _digests(item)
    elif isinstance(value, list):
        for item in value:
            yield from _digests(item)


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
            "An answer is recorded; it does not start the run."
        )
        return {"kind": "changed", "text": text}
    if row.status == Request.Status.SUPERSEDED:
        return {"kind": "changed", "text": "The work was sent back; this question is asked anew."}
    return None


def _receipt(who: Principal, detail: GateDetail) -> Mapping[str, Any]:
    given = detail.given
    assert given is not None
    run = detail.run
    kind, text, resume = "recorded", "Recorded.", ""
    if given.next == "resumed":
        kind, text = "resumed", _resumed(detail)
    elif isinstance(given.next, Mapping):
        kind, text = "resumes", f"Recorded. The run resumes at {given.next['resumesAt']}."
    elif run.kind == run.Kind.WORKFLOW:
        kind, text = "waits", "Recorded. The run waits for somebody to resume it."
        if run.status in (run.Status.PAUSED, run.Status.CANCELLED):
            resume = reverse("runs:run-resume", args=[run.pk])
    following = next((row for row in queries.open_for(who, 2) if row.pk != detail.row.pk), None)
    return {
        "decision": _decision(given),
        "verdict": given.verdict,
        "note": visible(given.note),
        "response_json": given.response,
        "actor_label": given.actor_label,
        "at": given.at,
        "seq": given.seq,
        "fingerprint": detail.row.fingerprint,
        "next_kind": kind,
        "next_text": text,
        "next_url": run.get_absolute_url(),
        "resume_form_url": resume,
        "next_item_url": following.get_absolute_url() if following is not None else "",
    }


def _decision(given: details.Given) -> str:
    words_of = {"yes": "Approved", "no": "Refused"}
    return words_of.get(given.verdict, f"Answered: {visible(given.decision)}")


def _resumed(detail: GateDetail) -> str:
    """Which way the run went with this answer."""
    given, outcomes = detail.given, detail.outcomes
    assert given is not None
    if given.verdict == "no" and outcomes.on_no:
        return f"The run resumed: the work went back to {outcomes.on_no}."
    if given.verdict == "yes" and outcomes.on_yes:
        return f"The run resumed with {_listed(outcomes.on_yes)}."
    return "The run resumed."


def _expires(row: Request) -> str:
    if row.expires_at is None or not row.is_open:
        return ""
    return f"expires {row.expires_at:%d %b %Y, %H:%M} UTC"


def _listed(names: list[str]) -> str:
    shown = [visible(name) for name in names[:4]]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(shown) + more


def inbox_page(who: Principal, query: Mapping[str, str]) -> dict[str, Any]:
    """The list pane: tabs with counts, filters as chips, rows, the way to the next page."""
    tab = query.get("tab", "")
    given = {key: query.get(key, "").strip()[:200] for key in ("workflow", "kind", "team", "due")}
    q = query.get("q", "").strip()[:200]
    if tab not in TAB_LABELS:
        counts = queries.inbox_counts(who)
        tab = "mine" if counts["mine"] and not counts["unclaimed"] else "unclaimed"
    found = queries.inbox(who, tab, q=q, filters=given, cursor=query.get("cursor") or None)
    kept = {key: value for key, value in {"q": q, **given}.items() if value}
    here = reverse("gates:inbox")

    def url(**changes: str) -> str:
        wanted = {"tab": found.tab, **kept, **changes}
        text = urlencode({key: value for key, value in wanted.items() if value})
        return f"{here}?{text}"

    narrowed = bool(kept)
    return {
        "tab": found.tab,
        "q": q,
        "tabs": [
            {
                "key": key,
                "label": label,
                "count": found.counts.get(key),
                "url": url(tab=key),
                "active": key == found.tab,
            }
            for key, label in TAB_LABELS.items()
        ],
        "filters": [
            {"label": f"{key}: {value}", "remove_url": url(**{key: ""})}
            for key, value in kept.items()
        ],
        "rows": found.rows,
        "next_url": url(cursor=found.next) if found.next else None,
        "empty_kind": "search" if narrowed else found.tab,
        "list_url": url(),
        "clear_url": f"{here}?tab={found.tab}",
        "unclaimed_url": f"{here}?tab=unclaimed",
        "workflows_url": reverse("runs:workflow-list"),
    }
