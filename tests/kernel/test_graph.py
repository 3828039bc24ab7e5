from __future__ import annotations

from dataclasses import replace

import pytest

from runs.kernel.conditions import failed, passed
from runs.kernel.events import joined
from runs.kernel.graph import (
    GraphShape,
    graph_identity,
    leaf_count,
    shape_from_json,
    shape_identity,
)
from tests.kernel.shapes import ask, graph, node, step

SHAPE = graph(
    node("build"),
    node("check", "build", when=passed("build").shape, accepts_kickback_to=("build",)),
    node("ship", "check", job=graph(node("inner"), name="shipping")),
    max_kickbacks={"build": 2},
)


def changed(which: str, **more: object) -> GraphShape:
    nodes = tuple(
        replace(each, **more) if each.name == which else each  # type: ignore[arg-type]  # a field of the node
        for each in SHAPE.nodes
    )
    return replace(SHAPE, nodes=nodes)


def test_identity_is_pinned() -> None:
    # A change here makes every record of before start again: say why in the commit.
    assert graph_identity(SHAPE) == (
        "f164af17763ac103962a3e2b236a0f11e379d676380c8ffc87f2a0df29c097ff"
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(SHAPE, name="h"),
        replace(SHAPE, concurrency=2),
        replace(SHAPE, isolation="worktree"),
        replace(SHAPE, max_kickbacks=2),
        replace(SHAPE, max_kickbacks={"build": 3}),
        changed("check", name="look"),
        changed("check", needs=()),
        changed("check", optional=True),
        changed("check", isolate=True),
        changed("check", when=failed("build").shape),
        changed("check", when=None),
    ],
)
def test_what_decides_the_order_of_work_belongs_to_the_identity(other: GraphShape) -> None:
    assert graph_identity(other) != graph_identity(SHAPE)
    assert shape_identity(other) != shape_identity(SHAPE)


@pytest.mark.parametrize(
    "other",
    [
        replace(SHAPE, nodes=SHAPE.nodes[::-1]),
        replace(SHAPE, stop_on_error=False),
        replace(SHAPE, brief="b", use_case="u"),
        changed("check", job=step("another", code="1")),
        changed("check", desc="d", gate="g", file="f"),
        changed("check", timeout_ms=5, retry_safe=True),
        changed("check", accepts_kickback_to=()),
    ],
)
def test_what_does_not_decide_it_stays_outside(other: GraphShape) -> None:
    assert graph_identity(other) == graph_identity(SHAPE)


def test_a_changed_inner_graph_changes_the_whole_but_not_its_parent() -> None:
    other = changed("ship", job=graph(node("other"), name="shipping"))

    assert graph_identity(other) == graph_identity(SHAPE)
    assert shape_identity(other) != shape_identity(SHAPE)


def test_a_question_survives_the_wire_with_or_without_input() -> None:
    for more in ({}, {"has_input": True}, {"has_input": True, "input": [1]}):
        leaf = ask(target="x", per_attempt=True, routing={"priority": 1}, **more)
        assert shape_from_json(leaf.to_json()) == leaf


def test_topological_order_keeps_declaration_order_among_equals() -> None:
    shape = graph(node("d", "b"), node("c", "a"), node("b"), node("a"))

    assert [each.name for each in shape.topological] == ["b", "d", "a", "c"]


def test_a_cycle_has_no_order() -> None:
    with pytest.raises(ValueError, match="cycle"):
        _ = graph(node("a", "b"), node("b", "a")).topological


def test_dependents_are_direct_and_indirect_in_declaration_order() -> None:
    shape = graph(node("z", "b"), node("a"), node("b", "a"), node("c", "a", "b"), node("free"))

    assert shape.dependents("a") == ("z", "b", "c")
    assert shape.dependents("b") == ("z", "c")
    assert shape.dependents("free") == ()


@pytest.mark.parametrize(("given", "slots"), [(None, 4), (0, 4), (-3, 4), (1, 1), (9, 9)])
def test_slots_are_four_unless_said_otherwise(given: int | None, slots: int) -> None:
    assert graph(concurrency=given).slots == slots


def test_a_person_counts_the_steps_at_every_depth() -> None:
    assert leaf_count(SHAPE) == 3
    assert leaf_count(step()) == 1


def test_names_with_slashes_give_no_ambiguous_text() -> None:
    assert joined(("a/b", "c")) != joined(("a", "b/c"))
    assert joined(("a%2Fb",)) != joined(("a/b",))
