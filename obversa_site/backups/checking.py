"""Whether what is in the database is whole: every record, its rows, its receipts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gates.errors import GateError
from gates.models import ArchivedRequest, Request
from gates.principals import Principal
from gates.receipts.decision_receipts import receipt_of
from runs.archive import rebuild, verifying
from runs.models import Run
from runs.report.verifying import ReceiptRefused, verify_receipt

# A key of nobody sees all; this one is in no table and lets nobody in.
_EVERYTHING: Final = Principal.for_key("check_records", ["read"])


@dataclass
class Checked:
    """What was looked at, and what was wrong with it in words."""

    runs: int = 0
    events: int = 0
    receipts: int = 0
    open_questions: int = 0
    rows: list[str] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return not (self.rows or self.records or self.refused)


def check_records(tell: Callable[[str], object] = lambda text: None) -> Checked:
    """Follow each record, make its rows anew and compare, make each receipt and check it.

    Rows that were off are right afterwards, as after `manage.py rebuild`.
    """
    found = Checked(open_questions=Request.objects.filter(status__in=Request.OPEN).count())
    for run in Run.objects.order_by("created_at").iterator():
        _check_run(run, found)
        if found.runs % 500 == 0:
            tell(f"runs={found.runs}")
    return found


def _check_run(run: Run, found: Checked) -> None:
    proof = verifying.verify_run(run)
    found.runs += 1
    found.events += proof.count
    if not proof.ok:
        found.records.append(f"{run.pk}: {proof.text}")
        return
    if off := rebuild.rebuild(run.pk):
        found.rows.append(f"{run.pk}: {off} rows were off")
    for kept in ArchivedRequest.objects.filter(run=run).exclude(receipt=None):
        found.receipts += 1
        try:
            verify_receipt(kept.receipt)
        except ReceiptRefused as error:
            found.refused.append(f"{kept.pk}: {error}")
    answered = Request.objects.filter(run=run, status=Request.Status.ANSWERED)
    for row in answered.order_by("asked_seq"):
        found.receipts += 1
        try:
            verify_receipt(receipt_of(_EVERYTHING, row.pk))
        except (GateError, ReceiptRefused) as error:
            found.refused.append(f"{row.pk}: {error}")
