"""Replay of recorded histories. When one must change, the commit says why."""

from __future__ import annotations

import pytest

from runs.kernel.decide import decide
from runs.kernel.jsonable import canonical_json
from runs.kernel.slots import RunState
from runs.kernel.state import reduce
from tests.kernel import recorded


@pytest.mark.parametrize("name", recorded.names())
def test_what_was_decided_then_is_decided_now(name: str) -> None:
    shape, attended, events = recorded.read(name)
    state = RunState()
    left = iter(events)
    for event in left:
        assert event.actor != "system", f"{event.kind} at {event.seq} does not follow any more"
        state = reduce(state, event)
        while follows := decide(shape, state, event.ts, attended=attended):
            for decided in follows:
                then = next(left)
                assert (decided.kind, decided.path) == (then.kind, then.path), then.seq
                assert canonical_json(decided.fields) == canonical_json(then.fields), then.seq
                state = reduce(state, then)

    assert state.seq == len(events)
    assert state.ended is not None


def test_there_are_histories_to_replay() -> None:
    assert len(recorded.names()) >= 3
