"""Whether a run's record is the one that was written: its events, their chain, its head and seal.

What this shows and what it cannot show is written in docs/receipts.md.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from django.db.models import F

from runs.archive import kept
from runs.kernel import chain
from runs.kernel.chain import Verdict
from runs.kernel.events import Event
from runs.models import Event as EventRow
from runs.models import Run
from runs.turns import folding
from runs.turns.seals import is_seal

_NEW_CHAIN = (
    "Every event fits its hash, and the end of the chain is not the one that was sealed: somebody "
    "made hashes anew after an alteration. Compare it with an export or a receipt of before."
)
_NO_SEAL = (
    "Every event fits the chain, and its seal is not one of this installation: the chain was made "
    "anew by somebody without its secret key, or the secret key was changed since. In that case "
    "verify with the key of then."
)


def kept_events(run: Run, last_seq: int | None = None) -> Generator[tuple[Event, str], None, None]:
    """The events of the run with the hashes that were kept of them, "" where none was."""
    last_seq = run.last_seq if last_seq is None else last_seq
    if run.archived_at is not None:
        yield from ((event, own) for event, own in kept.events_of(run) if event.seq <= last_seq)
        return
    rows = EventRow.objects.filter(run=run, seq__lte=last_seq).order_by("seq")
    for row in rows.iterator():
        yield folding.to_event(row), row.hash or ""


def follow(run: Run) -> Verdict:
    """Follow the chain of the events, whatever the run's own row says of its end."""
    # Whoever stops at the first wrong event leaves a cursor behind.
    with closing(kept_events(run)) as kept:
        return chain.follow(kept)


def verify_run(run: Run) -> Verdict:
    """Follow the run's chain; `seq` names the first event that does not fit."""
    run = Run.objects.get(pk=run.pk)
    try:
        found = follow(run)
    except kept.UNREADABLE as unreadable:
        return Verdict(ok=False, text=f"Its archive cannot be read. {unreadable}")
    if not found.ok:
        return found
    if found.count < run.last_seq:
        return _at(found, found.count + 1, f"Event {found.count + 1} is missing.")
    later = EventRow.objects.filter(run=run.pk, seq__gt=F("run__last_seq")).order_by("seq").first()
    if later is not None:
        return _at(found, later.seq, f"Event {later.seq} was put after the end of the record.")
    if run.head != found.head:
        return _at(found, None, _NEW_CHAIN)
    if not is_seal(run.seal, run.pk, run.last_seq, run.head):
        return _at(found, None, _NO_SEAL)
    text = f"All {found.count} events fit the chain, and its end has this installation's seal."
    return Verdict(ok=True, text=text, count=found.count, head=found.head)


def _at(found: Verdict, seq: int | None, text: str) -> Verdict:
    return Verdict(ok=False, text=text, count=found.count, head=found.head, seq=seq)
