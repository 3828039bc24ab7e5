"""What real pages showed, held against the record."""

from __future__ import annotations

from uuid import UUID

from gates.models import Request
from runs.models import Event
from tests.soak.browsers import Chromium, Inbox, Shown
from tests.soak.judge import Judgement

LAST_WORD = "last-word"


def judge_pages(chromium: Chromium, found: Judgement) -> None:
    """Every event and row once and in order, in pages that nobody reloaded."""
    missing: list[str] = []
    doubled: list[str] = []
    behind: list[str] = []
    for shown in chromium.shown:
        missing += _missing(shown)
        if shown.seqs != sorted(set(shown.seqs)):
            doubled.append(f"{shown.run}: {shown.seqs}")
        if shown.rows != shown.truth:
            off = {name for name, _ in shown.rows.items() ^ shown.truth.items()}
            behind.append(
                f"{shown.run}: {[(n, shown.rows.get(n), shown.truth.get(n)) for n in off]}"
            )
    reloaded = [one.run for one in chromium.shown if one.reloaded]
    reloaded += [one.name for one in chromium.inboxes if one.reloaded]
    found.figures |= {
        "pages of runs in Chromium": len(chromium.shown),
        "events shown in Chromium": sum(len(one.seqs) for one in chromium.shown),
        "people at Chromium": len(chromium.inboxes),
    }
    found.count("events missing in Chromium", missing)
    found.count("events doubled or out of order in Chromium", doubled)
    found.count("rows of steps that are behind in Chromium", behind)
    found.count("pages in Chromium that were loaded again", reloaded)
    found.count("inboxes in Chromium without the last question", _deaf(chromium.inboxes))


def _missing(shown: Shown) -> list[str]:
    recorded = Event.objects.filter(run=UUID(shown.run)).values_list("seq", flat=True)
    gone = sorted(set(recorded) - set(shown.seqs))
    return [f"{shown.run}: event {seq}" for seq in gone]


def _deaf(inboxes: list[Inbox]) -> list[str]:
    last = {str(one.pk) for one in Request.objects.filter(gate_id=LAST_WORD)}
    return [
        f"{inbox.name} shows {inbox.count}, {inbox.listed}"
        for inbox in inboxes
        if inbox.count != 1 or not last or not last.issubset(inbox.listed)
    ]
