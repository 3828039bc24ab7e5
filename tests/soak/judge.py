"""What came of everything, held against what had to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from gates.models import Response
from runs.archive import verifying
from runs.kernel.events import EventKind
from runs.models import Event, Run
from tests.faults import scene, verdict, work
from tests.soak import flows
from tests.soak.ledger import Answer, Ledger, Started, Watch
from tests.soak.roller import Roller
from tests.soak.watchers import InboxPage

SHOWN = 12
ANSWERS = (EventKind.SUBMITTED, EventKind.RESPONDED, EventKind.APPROVAL_DECIDED)


@dataclass(kw_only=True)
class Judgement:
    """The figures of the table; those in `wrong` have to be 0."""

    figures: dict[str, int | float | str] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def count(self, name: str, faults: list[str]) -> None:
        """A figure that has to be 0, and what it is about."""
        self.wrong[name] = len(faults)
        self.told += [f"{name}: {text}" for text in faults[:SHOWN]]

    @property
    def is_well(self) -> bool:
        return not any(self.wrong.values())


def judge(ledger: Ledger, posts: list[dict[str, Any]], inboxes: list[InboxPage]) -> Judgement:
    """Look at every run, answer, effect and socket."""
    found = Judgement()
    _runs(ledger, posts, found)
    _answers(ledger, found)
    _sockets(ledger, inboxes, found)
    found.figures["longest silence at all sockets, seconds"] = round(ledger.longest_silence, 1)
    return found


def judge_rollout(ledger: Ledger, found: Judgement, roller: Roller) -> None:
    """Where processes are only stopped in good order nobody outside may notice."""
    noticed = [
        f"{what}: {count} times {status}"
        for (what, status), count in sorted(ledger.replies.items())
        if status.startswith("5") or status.endswith("Error")
    ]
    found.count("calls that failed", noticed)
    found.count("processes that did not stop", [one for one in ledger.told if "stop within" in one])
    lost = Event.objects.filter(kind=EventKind.STEP_LOST).count()
    found.count("steps interrupted", ["interrupted"] * lost)
    noted = Event.objects.filter(kind=EventKind.LOG, payload__contains="The code of this workflow")
    found.figures["runs begun by one version, ended by the next"] = noted.count()
    by_next = Event.objects.filter(payload__contains="done by the next version").count()
    found.count("work of the next version not seen", [] if by_next else ["none"])
    found.count("what its migration may not do", roller.broken)
    before, after = _starts_since(roller.migrated_at)
    found.figures |= {"starts on the new schema by the version before": before}
    found.figures |= {"starts on the new schema by the next": after}
    found.count("versions that did not work on the new schema", [] if before and after else ["one"])


def _starts_since(migrated_at: float) -> tuple[int, int]:
    """How many starts of steps either version made on the schema of the next."""
    if not migrated_at:
        return 0, 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FILTER (WHERE soak_mark IS NULL), COUNT(soak_mark)"
            " FROM runs_attempt WHERE ready_at > TO_TIMESTAMP(%s)",
            [migrated_at],
        )
        before, after = cursor.fetchone()
    return int(before), int(after)


# --- runs ----------------------------------------------------------------------------------------


def _runs(ledger: Ledger, posts: list[dict[str, Any]], found: Judgement) -> None:
    effects = verdict.by_run(scene.notes("effects"))
    sent = Counter(str(post["key"]) for post in posts)
    wrong: list[str] = []
    twice: list[str] = []
    unsound: list[str] = []
    asked = excused = 0
    for started in ledger.runs.values():
        run = Run.objects.filter(pk=started.id).first()
        if run is None:
            wrong.append(f"{started.workflow} {started.id} was accepted and is not there")
            continue
        expected = _expected(started)
        one = verdict.judge(run, expected, effects.get(started.id, []))
        _actions(started, sent, posts, one)
        wrong += [f"{started.workflow} {started.id}: {text}" for text in one.wrong]
        twice += [f"{started.workflow} {started.id}: {text}" for text in one.twice]
        asked += one.asked
        excused += len(one.twice_after_asking)
        proof = verifying.verify_run(run)
        if not proof.ok:
            unsound.append(f"{run.pk}: {proof.text}")
    strays = Run.objects.exclude(pk__in=list(ledger.runs)).filter(workflow__in=flows.PLANS)
    wrong += [f"{run.workflow} {run.pk} was started and nobody was told" for run in strays]
    finished = Run.objects.filter(pk__in=list(ledger.runs), ended_at__isnull=False).count()
    found.figures |= {
        "runs started": len(ledger.runs),
        "runs ended": finished,
        "events": Event.objects.count(),
        "effects outside": len(scene.notes("effects")) + len(posts),
        "steps and calls that were asked about": asked,
        "done twice after asking": excused,
    }
    found.count("runs that ended wrong", wrong)
    found.count("effects done twice", twice)
    found.count("records that do not verify", unsound)


def _expected(started: Started) -> verdict.Expected:
    name, params = started.workflow, started.params
    if name in (work.SAFE, work.UNSAFE):
        return verdict.expected_of(started.id, name)
    return verdict.Expected(
        status=flows.PLANS[name].status(params),
        effects=flows.effects_of(started.id, name, params),
        once=(EventKind.RUN_START, EventKind.RUN_END),
        # A reviewer is a condition, which nobody declared to be safe.
        may_repeat=lambda path: "panel" not in path[:-1],
    )


def _actions(
    started: Started, sent: Counter[str], posts: list[dict[str, Any]], one: verdict.Verdict
) -> None:
    """What reached the other side: by `replay` it drops what it knows, by `none` people look."""
    mine = {str(post["key"]) for post in posts if post["run"] == started.id}
    expected = flows.PLANS[started.workflow].posts(started.params)
    if len(mine) != expected:
        one.wrong.append(f"{len(mine)} actions happened, not {expected}")
    if started.workflow != "soak-none":
        return
    doubts = Event.objects.filter(run=UUID(started.id), kind=EventKind.REQUESTED)
    in_doubt = any(str(event.payload["request"]["gateId"]).startswith("doubt:") for event in doubts)
    one.asked += in_doubt
    again = [key for key in mine if sent[key] > 1]
    (one.twice_after_asking if in_doubt else one.twice).extend(again)


# --- answers -------------------------------------------------------------------------------------


def _answers(ledger: Ledger, found: Judgement) -> None:
    recorded = _recorded(ledger)
    kept = Counter(Response.objects.values_list("request_id", "actor"))
    lost = [
        f"{answer.response} of {answer.actor} to {answer.request} in {answer.run}"
        for answer in ledger.answers
        if not _is_in(recorded.get(answer.run, []), answer)
    ]
    doubled = [
        f"{actor} answered {request} {count} times"
        for (request, actor), count in kept.items()
        if count > 1
    ]
    for run, events in recorded.items():
        notes = Counter((kind, response["note"]) for kind, response in events if "note" in response)
        doubled += [
            f"{note} stands {count} times in {run}" for note, count in notes.items() if count > 1
        ]
    cancelled = set(
        map(str, Run.objects.filter(cancel_requested_at__isnull=False).values_list("pk", flat=True))
    )
    lost += [f"the cancel of {run}" for run in ledger.cancels - cancelled]
    found.figures["answers accepted"] = len(ledger.answers) + len(ledger.cancels)
    found.count("answers lost", lost)
    found.count("answers doubled", doubled)


def _recorded(ledger: Ledger) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The answers in each run's record."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    rows = Event.objects.filter(kind__in=ANSWERS).values_list("run_id", "kind", "payload")
    for run, kind, payload in rows:
        response = payload.get("response")
        if isinstance(response, dict):
            found.setdefault(str(run), []).append((kind, response))
    return found


def _is_in(events: list[tuple[str, dict[str, Any]]], answer: Answer) -> bool:
    return any(response == answer.response for _, response in events)


# --- sockets -------------------------------------------------------------------------------------


def _sockets(ledger: Ledger, inboxes: list[InboxPage], found: Judgement) -> None:
    ends = dict(Event.objects.filter(kind=EventKind.RUN_END).values_list("run_id", "seq"))
    ends_by_id = {str(run): seq for run, seq in ends.items()}
    missing, disorder, closed = [], [], []
    for watch in ledger.watches:
        missing += _missing(watch, ends_by_id.get(watch.run))
        if watch.seqs != sorted(set(watch.seqs)):
            disorder.append(f"{watch.run}: {watch.seqs}")
        if watch.closed is not None:
            closed.append(f"a socket of run {watch.run} was sent away with {watch.closed}")
    closed += [
        f"{page.person.name} was sent away with {page.closed}" for page in inboxes if page.closed
    ]
    found.figures |= {
        "sockets of runs": len(ledger.watches),
        "their connections": sum(watch.connections for watch in ledger.watches),
        "sockets of inboxes": len(inboxes),
        "events shown": sum(len(watch.seqs) for watch in ledger.watches),
    }
    found.count("sockets with events missing", missing)
    found.count("sockets with events doubled or out of order", disorder)
    found.count("sockets that were sent away", closed)
    deaf = [f"{page.person.name} was told of {page.count}" for page in inboxes if page.count != 1]
    found.count("inboxes that missed the last question", deaf)


def _missing(watch: Watch, end: int | None) -> list[str]:
    until = max([end or 0, *watch.seqs])
    gone = sorted(set(range(1, until + 1)) - set(watch.seqs))
    if not gone and watch.ended:
        return []
    return [f"{watch.run}: {gone[:10]} of {until} after {watch.connections} connections"]
