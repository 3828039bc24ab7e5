"""What follows from the answers about actions: decisions, the grants they make, and no answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.kernel import grants
from runs.kernel.actions import Action, Ask
from runs.kernel.calls import EXPIRED, WITHDRAWN
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.slots import RunState


def decided(state: RunState, now: int) -> list[Event]:
    """What people decided about the open approvals, and what became of those nobody decided.

    A decision and the grant it makes are recorded with the first look after the answer.
    """
    events: list[Event] = []
    for request_id, key in state.approvals.items():
        events += _outcome_of(state, request_id, state.actions[key], now)
    return events


def _outcome_of(state: RunState, request_id: str, action: Action, now: int) -> list[Event]:
    held = state.callbacks.get(request_id)
    ask = next(one for one in action.asks if one.request_id == request_id)
    path = tuple(ask.about.get("path") or ())
    about: dict[str, Any] = {"requestId": request_id, "key": action.key, "tool": action.tool}
    if held is None or held.is_live:
        return []
    if held.status == "answered":
        return _answered(state, ask, about, path, held.router_id or "", held.response or {}, now)
    if request_id in state.expired:
        code = EXPIRED
    elif request_id in state.withdrawn:
        code = WITHDRAWN
    elif held.superseded_by != request_id:
        code = "approval_superseded"
    else:
        # Closed in its own place, and the reason comes next.
        return []
    return [Event(EventKind.TOOL_REFUSED, path, {**about, "code": code}, ts=now)]


def _answered(
    state: RunState,
    ask: Ask,
    about: dict[str, Any],
    path: Path,
    by: str,
    response: Mapping[str, Any],
    now: int,
) -> list[Event]:
    decision = str(response.get("decision", ""))
    note = response.get("note")
    told = {**about, "decision": decision, "decidedBy": by}
    if isinstance(note, str) and note.strip():
        told["note"] = note.strip()
    made = grants.issued(state.run_id, ask.request_id, ask.about, decision, by, now)
    if made is None:
        return [Event(EventKind.APPROVAL_DECIDED, path, told, ts=now)]
    told["grantId"] = made["grantId"]
    return [
        Event(EventKind.APPROVAL_DECIDED, path, told, ts=now),
        Event(EventKind.GRANT_ISSUED, path, made, ts=now),
    ]
