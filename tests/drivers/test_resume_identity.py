"""What has to stay the same for recorded steps to count (runs.md R230-R237)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.drivers.jsonl import read_record
from runs.drivers.memory import run
from runs.kernel.conditions import passed
from runs.kernel.state import fold
from runs.shapes.dag import Node, dag
from runs.shapes.steps import fn_job
from tests.drivers.scripted import Script


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_a_changed_shape_starts_over_in_the_same_record(script: Script) -> None:
    script.run(script.flow("a", "b"))
    script.run(script.flow("a", "b", c=Node(job=script.step("c"), optional=True)))
    assert script.ran == {"a": 2, "b": 2, "c": 1}

    first, second = script.anchors()
    assert first["identity"] != second["identity"]
    assert first["recordId"] != second["recordId"]
    # Back to the first shape: its steps do not come back to life (R236).
    script.run(script.flow("a", "b"))
    assert script.ran == {"a": 3, "b": 3, "c": 1}
    script.run(script.flow("a", "b"))
    assert script.ran == {"a": 3, "b": 3, "c": 1}
    third, fourth = script.anchors()[2:]
    assert third == fourth
    assert fold(read_record(script.path).events).ended is not None


def test_another_name_starts_over_and_back_again_too(script: Script) -> None:
    for name in ("g", "h", "g"):
        script.run(dag(name, {"a": script.step("a")}))

    assert script.ran == {"a": 3}


def test_another_workspace_starts_over(script: Script, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    script.run(script.flow("a"))
    run(script.flow("a"), record_to=script.path, resume=True, cwd=tmp_path / "other")
    assert script.ran == {"a": 2}
    script.run(script.flow("a"))
    assert script.ran == {"a": 3}


def test_a_changed_body_or_description_goes_on(script: Script) -> None:
    script.run(dag("g", {"a": Node(job=script.step("a"), desc="one")}))
    script.run(dag("g", {"a": Node(job=fn_job("z", lambda _ctx: None), desc="two")}))

    assert script.ran == {"a": 1}


def test_a_changed_condition_starts_over(script: Script) -> None:
    def flow(when: Any) -> Any:
        return dag(
            "g", {"a": script.step("a"), "b": Node(job=script.step("b"), needs="a", when=when)}
        )

    script.run(flow(passed("a")))
    script.run(flow(None))

    assert script.ran == {"a": 2, "b": 2}


def test_an_inner_graph_that_changed_restarts_alone(script: Script) -> None:
    def flow(*names: str) -> Any:
        inner = dag("inner", {name: script.step(name) for name in names})
        return dag("g", {"first": script.step("first"), "in": Node(job=inner, needs="first")})

    script.fails = {"y"}
    script.run(flow("x", "y"))
    script.fails = set()
    script.run(flow("x", "y", "z"))
    assert script.ran == {"first": 1, "x": 2, "y": 2, "z": 1}
    # It has finished now, so a change inside it no longer matters (R237).
    script.run(flow("x"))
    assert script.ran == {"first": 1, "x": 2, "y": 2, "z": 1}


IDENTITY: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"when": passed("a")}, {}),
    ({"optional": True}, {}),
    ({"isolate": True}, {}),
    ({}, {"concurrency": 2}),
    ({}, {"max_kickbacks": 1}),
    ({}, {"name": "other"}),
]


@pytest.mark.parametrize(("node", "graph"), IDENTITY)
def test_what_belongs_to_the_identity_starts_over(
    script: Script, node: dict[str, Any], graph: dict[str, Any]
) -> None:
    def flow(node: dict[str, Any], graph: dict[str, Any]) -> Any:
        nodes = {"a": script.step("a"), "b": Node(job=lambda _ctx: None, needs="a", **node)}
        return dag(nodes=nodes, **{"name": "g", **graph})

    script.run(flow({}, {}))
    script.run(flow(node, graph))
    assert script.ran == {"a": 2}
    assert len({anchor["identity"] for anchor in script.anchors()}) == 2


@pytest.mark.parametrize(
    "node", [{"desc": "x"}, {"gate": "x"}, {"retry_safe": True}, {"timeout_ms": 60_000}]
)
def test_what_does_not_belong_to_it_goes_on(script: Script, node: dict[str, Any]) -> None:
    for more in ({}, node):
        script.run(dag("g", {"a": Node(job=script.step("a"), **more)}))
    assert script.ran == {"a": 1}
