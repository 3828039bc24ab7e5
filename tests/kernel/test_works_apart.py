"""An interrupted step that worked in a worktree of its own (runs.md R239)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runs.kernel.jsonable import canonical_json
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import graph, node, step


@pytest.mark.parametrize("action", ["run-again", "fail"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_r239_it_can_run_again_or_fail(action: str, wrapped: bool) -> None:
    apart = node("a", isolate=True)
    if wrapped:
        apart = node("a", job=replace(step("a"), kind="isolated"))
    run = Puppet(graph(apart))
    run.loses("job", "g", "a")
    (question,) = run.pending
    assert run.due == {}
    run.answers({"action": action})

    if action == "fail":
        assert run.outcome.status == "fail"
    else:
        assert run.due == {("job", ("g", "a")): 2}
    assert question.startswith("reconcile:g/a#")


def test_r239_nobody_can_say_that_it_finished() -> None:
    run = Puppet(graph(node("a", isolate=True)))
    run.loses("job", "g", "a")
    (held,) = run.state.callbacks.requests.values()

    assert '"enum":["run-again","fail"]' in canonical_json(held.request.response_schema)
    assert "worktree of its own" in held.request.decision_text


def test_r240_once_however_often_it_is_met() -> None:
    run = Puppet(graph(node("a", isolate=True), node("b")))
    run.loses("job", "g", "a")
    before = list(run.pending)
    run.settle()

    assert run.pending == before
