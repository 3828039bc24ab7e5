"""What the work behind a question passed with: findings that a judge let stand (design D22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gates.errors import AnswerRefused
from gates.models import Request
from runs.kernel.state import RunState
from runs.kernel.tallies import is_no
from runs.models import Step
from runs.pages import words
from runs.plaintext import visible

MAX_SHOWN: Final = 50
MAX_TOLD: Final = 5


def open_findings(row: Request) -> list[str]:
    """The findings left open by the steps that the question's step needs, in words."""
    if not row.step_path:
        return []
    beside = Step.objects.filter(run=row.run_id, parent=row.step_path[:-1])
    # Most runs have none, and outcomes may be long.
    marked = {step.name: step for step in beside.filter(outcome__contains='"openFindings"')}
    if not marked:
        return []
    needs = dict(beside.values_list("name", "needs"))
    behind = _behind(row.step_path[-1], needs)
    found = [
        f"{visible(step.name)}, {words.finding(finding)}"
        for step in sorted(marked.values(), key=lambda one: one.position)
        if step.name in behind
        for finding in (step.outcome or {}).get("openFindings") or ()
    ]
    left = len(found) - MAX_SHOWN
    return found[:MAX_SHOWN] + ([f"and {left} more, in the record of the run"] if left > 0 else [])


def unseen(state: RunState, row: Request, value: object, *, seen: bool) -> AnswerRefused | None:
    """Refuse a yes to work that passed with open findings which nobody says to have read."""
    if seen or not isinstance(value, Mapping) or is_no(value):
        return None
    left = _left_open(state, tuple(row.step_path))
    if not left:
        return None
    shown = "; ".join(left[:MAX_TOLD]) + ("; and more" if len(left) > MAX_TOLD else "")
    text = f"It passed with open findings: {shown}. Say that you have seen them, or refuse."
    return AnswerRefused([("seen", text)])


def _left_open(state: RunState, path: tuple[str, ...]) -> list[str]:
    """The findings left open behind the step at `path`, as its run's record has them."""
    scope = state.scopes.get(path[:-1])
    if scope is None or not path:
        return []
    behind = _behind(path[-1], scope.plan.needs)
    return [
        f"{visible(name)}, {words.finding(finding.to_json())}"
        for name in scope.plan.names
        if name in behind and (outcome := scope.nodes[name].outcome) is not None
        for finding in outcome.open_findings
    ]


def steps_behind(row: Request) -> set[tuple[str, ...]]:
    """The places of the steps that the question's step needs, near or far."""
    if not row.step_path:
        return set()
    parent = row.step_path[:-1]
    needs = dict(Step.objects.filter(run=row.run_id, parent=parent).values_list("name", "needs"))
    return {(*parent, name) for name in _behind(row.step_path[-1], needs)}


def _behind(name: str, needs: Mapping[str, Sequence[str]]) -> set[str]:
    """Everything that has to be done before the step, near or far."""
    found: set[str] = set()
    left = list(needs.get(name, ()))
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left.extend(needs.get(one, ()))
    return found
