"""The `dag:node` events of one node: it started, was skipped, or is done for now."""

from __future__ import annotations

from typing import Any

from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import NodeShape
from runs.kernel.outcomes import Outcome
from runs.kernel.scopes import NodeState
from runs.kernel.slots import Slot
from runs.kernel.spending import NOTHING, Spent


def started(path: Path, node: NodeShape, state: NodeState, now: int) -> Event:
    """A new attempt of the node begins."""
    facts = _facts(node, state, "start")
    if node.timeout_ms is not None:
        facts["timeoutMs"] = node.timeout_ms
    return Event(EventKind.NODE, path, facts, ts=now)


def skipped(path: Path, node: NodeShape, state: NodeState, reason: str, now: int) -> Event:
    """The node's condition is not met; that counts as a pass (runs.md R117)."""
    outcome = Outcome(status="pass", summary=f"skipped: {reason}", data={"skipped": True})
    facts = _facts(node, state, "skip")
    return Event(EventKind.NODE, path, {**facts, "outcome": outcome.to_json()}, ts=now)


def never_started(path: Path, node: NodeShape, state: NodeState, why: str, now: int) -> Event:
    """The node ends without a start (runs.md R121)."""
    return done(path, node, state, None, Outcome(status="aborted", summary=why), now)


def done(
    path: Path,
    node: NodeShape,
    state: NodeState,
    slot: Slot | None,
    outcome: Outcome,
    now: int,
    spent: Spent = NOTHING,
) -> Event:
    """The node ended, or waits; with its slot it also says how long that took (runs.md R209)."""
    facts = _facts(node, state, "done") | spent.figures()
    if slot is not None:
        facts["durationMs"] = max(0, now - (slot.started_at or state.started_at))
    return Event(EventKind.NODE, path, {**facts, "outcome": outcome.to_json()}, ts=now)


def _facts(node: NodeShape, state: NodeState, phase: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"node": node.name, "phase": phase, "attempt": state.attempt}
    if node.needs:
        facts["needs"] = list(node.needs)
    if node.desc is not None:
        facts["desc"] = node.desc
    if node.gate is not None:
        facts["gate"] = node.gate
    return facts
