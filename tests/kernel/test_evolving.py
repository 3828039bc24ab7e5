"""A value with some of its fields changed is the one that `dataclasses.replace` makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from runs.kernel.callbacks import Held
from runs.kernel.clocks import Clock
from runs.kernel.evolving import evolve
from runs.kernel.loops import LoopState, Span
from runs.kernel.outcomes import Outcome
from runs.kernel.scopes import NodeState, opened
from runs.kernel.slots import RunState, Slot
from runs.kernel.spending import Spent
from tests.kernel.held import A

MAKES: list[Callable[[], Any]] = [
    RunState,
    Slot,
    NodeState,
    lambda: opened(["a", "b"], {"b": ["a"]}, invocation=2, at=7),
    lambda: LoopState(invocation=1, started_at=3),
    Span,
    Spent,
    Clock,
    lambda: Held(request=A),
]


@pytest.mark.parametrize("make", MAKES)
def test_each_field_is_changed_alone_and_the_others_stay(make: Callable[[], Any]) -> None:
    before = make()
    for field in fields(before):
        after = evolve(before, **{field.name: "changed"})

        assert type(after) is type(before)
        assert after == replace(before, **{field.name: "changed"})
        assert evolve(before) == before
    assert before == make()


def test_several_fields_change_at_once_and_nothing_is_shared_but_the_values() -> None:
    before = RunState(run_id="r", slots={("a",): Slot()})
    after = evolve(before, seq=4, held="why")

    assert (after.seq, after.held, after.run_id) == (4, "why", "r")
    assert after.slots is before.slots
    assert (before.seq, before.held) == (0, "")


@pytest.mark.parametrize(("before", "name"), [(RunState(), "seq"), (Slot(), "number")])
def test_what_comes_out_is_frozen_and_has_no_new_fields(before: Any, name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(evolve(before), name, 5)
    with pytest.raises(TypeError, match=r"has no field 'nowhere'"):
        evolve(before, nowhere=1)


def test_a_value_that_checks_itself_is_left_to_replace() -> None:
    with pytest.raises(TypeError, match=r"Outcome checks itself .* dataclasses\.replace"):
        evolve(Outcome(status="pass"), status="nothing")
