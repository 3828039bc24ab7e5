"""Who may look at how the installation does, and who may send a failed message again."""

from __future__ import annotations

from gates import access as gates_access
from runs import access as runs_access
from runs.access import Forbidden
from runs.people.principals import Principal


def may_see(who: Principal) -> bool:
    """Whoever sees every run and every question: what is here names any of them."""
    return who.has_scope("read") and runs_access.sees_all(who) and gates_access.sees_all(who)


def need_see(who: Principal) -> None:
    """Raise Forbidden for everybody else."""
    if not may_see(who):
        raise Forbidden("Operations are for those who may see everything.")


def may_send_again(who: Principal) -> bool:
    """Operators, of those who may look."""
    return gates_access.may_operate(who) and runs_access.sees_all(who)


def need_send_again(who: Principal) -> None:
    """Raise Forbidden for somebody who may only look."""
    if not may_send_again(who):
        raise Forbidden("Only an operator sends a failed message again.")
