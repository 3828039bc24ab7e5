"""Who reads the sensitive values of a question, and how everybody else sees it.

`presentation.sensitive` declares them (runs/kernel/masking.py). Whoever has the permission
`gates.view_sensitive` reads them on the question's page and over REST; keys without a person, the
pages of runs, the events of runs and every websocket always show them masked.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from gates.models import Request
from gates.principals import Principal
from runs.kernel.masking import KEY, MASK, fault, is_masked, masked, pointers_of

__all__ = [
    "KEY",
    "MASK",
    "VIEW_SENSITIVE",
    "fault",
    "input_for",
    "is_masked",
    "masked",
    "masked_input",
    "may_view_sensitive",
    "pointers_for",
    "pointers_of",
    "shown_to",
]

VIEW_SENSITIVE: Final = "gates.view_sensitive"


def may_view_sensitive(who: Principal | None) -> bool:
    """Whether this caller reads what a question declares sensitive; a key only with its person."""
    return who is not None and who.has_perm(VIEW_SENSITIVE)


def pointers_for(who: Principal | None, row: Request) -> tuple[str, ...]:
    """The places of the question's input that are masked for this caller."""
    pointers = pointers_of(row.presentation)
    return () if not pointers or may_view_sensitive(who) else pointers


def input_for(who: Principal | None, row: Request) -> Any:
    """The question's input as this caller may read it."""
    return masked(row.input, pointers_for(who, row))


def shown_to(who: Principal | None, row: Request) -> Request:
    """The row as a page may read from it: the same one, or a copy whose input is masked."""
    pointers = pointers_for(who, row)
    if not pointers:
        return row
    shown = copy.copy(row)
    shown.input = masked(row.input, pointers)
    return shown


def masked_input(row: Request) -> Any:
    """The question's input as it is shown where nobody knows who reads."""
    return masked(row.input, pointers_of(row.presentation))
