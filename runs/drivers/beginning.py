"""How a session begins: its start is recorded, and in a record that goes on what it takes over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runs.drivers import resume
from runs.drivers.opening import Opening
from runs.kernel import answered
from runs.kernel.events import EventKind
from runs.kernel.graph import shape_identity
from runs.kernel.slots import RunState
from runs.kernel.turns import RECORDED_ENGINE_USAGE

if TYPE_CHECKING:
    from runs.drivers.session import MemorySession


def begin(session: MemorySession) -> RunState:
    """Record it; returns the state against which the first starts are due."""
    past, known = session.past, 0
    if past.events:
        session.state = resume.folded(past)
        known = resume.known_of(past, session.client.history())
    session.read_client(quietly=True)
    if past.events:
        session.state = resume.timed(session.state, past)
    before = session.state
    if session.monitor is not None:
        session.append(EventKind.MONITOR, (), {"url": session.monitor.url})
    session.append(EventKind.RUN_START, (), _facts(session))
    if not past.events:
        return before
    for wire in session.client.history()[known : session.read]:
        # What came between the sessions is folded already.
        session.only_tell(wire["kind"], {key: wire[key] for key in wire if key != "kind"})
    # This session has the record to itself, so nobody is at these claims any longer.
    for request_id, token in resume.left_claims(session.shape, session.state):
        session.client.release(request_id, token)
    for request_id, over in resume.dropped_questions(_opening(session)):
        session.client.supersede(request_id, over)
    session.read_client()
    # What starts over forgets, too, which models answered in it (runs.md R235).
    stale = _opening(session).stale
    known_answers = tuple(
        one for one in session.state.answers if not any(it.holds(one.path) for it in stale)
    )
    for stage in resume.STAGES:
        session.record(stage(_opening(session)))
    if known_answers:
        session.shared[RECORDED_ENGINE_USAGE] = answered.told(known_answers)
    return RunState()


def _opening(session: MemorySession) -> Opening:
    return Opening(
        shape=session.shape,
        state=session.state,
        past=session.past,
        workspace=session.where,
        params=session.params,
    )


def _facts(session: MemorySession) -> dict[str, Any]:
    file = session.record_file
    facts: dict[str, Any] = {"session": 1 if file is None else file.session}
    if session.run_id is not None:
        facts["runId"] = session.run_id
    if file is not None:
        facts |= {
            "recordPath": str(file.path),
            "recordId": session.name,
            "shape": shape_identity(session.shape),
            "workspace": session.where,
        }
    if session.params or session.past.events:
        facts["params"] = session.params
    return facts | session.start
