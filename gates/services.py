"""What people and programs do to questions, by the noun that each act is about.

Every act is one turn of the question's run, decided by the kernel's own operations on the folded
record. The row's constraints and its conditional UPDATE (gates/projector.py) come after, in the
same transaction.
"""

from __future__ import annotations

from gates.answers.answering import break_glass, submit
from gates.answers.claiming import Claimed, claim, release
from gates.answers.handing import assign, delegate
from gates.answers.rescues import expire_due, force_release, withdraw
from gates.external import post_request
from gates.receipts.next_steps import Receipt

__all__ = [
    "Claimed",
    "Receipt",
    "assign",
    "break_glass",
    "claim",
    "delegate",
    "expire_due",
    "force_release",
    "post_request",
    "release",
    "submit",
    "withdraw",
]
