from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.conditions import all_of, any_of, failed, never, not_, passed
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.graph import GraphShape
from runs.shapes.dag import Node, PipelineStage, dag, parallel, pipeline, sequence
from runs.shapes.steps import fn_job


def job(_ctx: Any = None) -> None: ...


def graph_of(made: Any) -> GraphShape:
    assert isinstance(made.shape, GraphShape)
    return made.shape


def refused(match: str, nodes: Any = None, name: Any = "g", **options: Any) -> None:
    with pytest.raises(DeclarationError, match=match) as caught:
        dag(name, {"a": job} if nodes is None else nodes, **options)
    assert isinstance(caught.value, LoopError)
    assert caught.value.code == "CONFIG"


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_graph_needs_a_name(name: Any) -> None:
    refused("name", name=name)


def test_a_need_that_is_no_node_is_refused_with_all_names() -> None:
    with pytest.raises(DeclarationError) as caught:
        dag("flow", {"a": Node(job=job, needs="missing")})

    for part in ("'flow'", "'a'", "'missing'"):
        assert part in str(caught.value)


def test_a_cycle_is_refused() -> None:
    refused("cycle", {"a": Node(job=job, needs=["b"]), "b": Node(job=job, needs=["a"])})
    refused("cycle", {"a": Node(job=job, needs="a")})


@pytest.mark.parametrize("value", [1, "yes", None])
def test_retry_safe_is_a_bool(value: Any) -> None:
    refused("retry_safe", {"a": {"job": job, "retry_safe": value}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("needs", 3),
        ("needs", [3]),
        ("needs", None),
        ("accepts_kickback_to", "a"),
        ("accepts_kickback_to", None),
        ("accepts_kickback_to", [1]),
        ("desc", 5),
        ("timeout_ms", -1),
        ("timeout_ms", True),
        ("job", 7),
    ],
)
def test_a_node_field_of_the_wrong_kind_is_refused(key: str, value: Any) -> None:
    refused("no job" if key == "job" else key, {"a": {"job": job, key: value}})


def test_unknown_keys_and_missing_jobs_are_refused() -> None:
    refused("retrySafe", {"a": {"job": job, "retrySafe": True}})
    refused("no job", {"a": {"needs": []}})


@pytest.mark.parametrize(
    ("when", "needs", "optional", "fine"),
    [
        (passed("a"), ["a"], False, True),
        (passed("a"), [], False, False),
        (passed("x"), ["a"], False, False),
        ([passed("a"), [passed("x")]], ["a"], False, False),
        (all_of(passed("a"), failed("a")), ["a"], True, True),
        (all_of(passed("a"), failed("a")), ["a"], False, False),
        (failed("a"), ["a"], True, True),
        (failed("a"), ["a"], False, False),
        (not_(failed("a")), ["a"], False, True),
        (any_of(failed("a"), passed("x")), ["a"], False, True),
        (never, [], False, True),
    ],
)
def test_names_a_when_surely_reads_must_be_needs(
    when: Any, needs: list[str], optional: bool, fine: bool
) -> None:
    nodes = {
        "a": Node(job=job, optional=optional),
        "b": Node(job=job, needs=needs, when=when),
    }
    if fine:
        assert graph_of(dag("g", nodes)).by_name["b"].when is not None
    else:
        refused(r"passed|failed", nodes)


def test_send_backs_go_only_to_what_the_sender_depends_on() -> None:
    def nodes(target: str) -> dict[str, Node]:
        sender = Node(job=job, needs=["b"], accepts_kickback_to=[target])
        return {"a": Node(job=job), "b": Node(job=job, needs="a"), "c": sender, "d": Node(job=job)}

    assert graph_of(dag("g", nodes("a"))).by_name["c"].accepts_kickback_to == ("a",)
    for target in ("c", "d", "nowhere"):
        refused(target, nodes(target))


@pytest.mark.parametrize(
    "limit", [-1, 1.5, True, "2", [1], {"x": 1}, {"a": -1}, {"a": True}, {"a": 1.0}, {"a": None}]
)
def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    refused("max_kickbacks", max_kickbacks=limit)


@pytest.mark.parametrize("limit", [None, 0, 3, {}, {"a": 0}, {"a": 2}])
def test_a_limit_is_a_count_or_a_count_per_target(limit: Any) -> None:
    assert graph_of(dag("g", {"a": job}, max_kickbacks=limit)).max_kickbacks == limit


def test_options_of_the_wrong_kind_are_refused() -> None:
    refused("pause_policy", pause_policy="wait")
    refused("concurrency", concurrency="4")
    refused("concurrency", concurrency=True)
    with pytest.raises(TypeError):
        dag("g", {}, unknown=1)  # type: ignore[call-arg]  # wrong on purpose


def test_a_bare_job_a_mapping_and_a_node_are_the_same() -> None:
    step = fn_job("s", job)
    shapes = [
        graph_of(dag("g", {"a": given})).nodes for given in (step, {"job": step}, Node(job=step))
    ]

    assert shapes[0] == shapes[1] == shapes[2]


def test_needs_may_be_one_name_and_a_doubled_one_counts_once() -> None:
    nodes = {"a": job, "b": Node(job=job, needs="a"), "c": Node(job=job, needs=["a", "b", "a"])}
    shape = graph_of(dag("g", nodes))

    assert [node.needs for node in shape.nodes] == [(), ("a",), ("a", "b")]


def test_isolation_is_the_default_of_its_nodes() -> None:
    nodes = {"a": job, "b": Node(job=job, isolate=False)}

    assert [n.isolate for n in graph_of(dag("g", nodes, isolation="worktree")).nodes] == [
        True,
        False,
    ]
    assert [n.isolate for n in graph_of(dag("g", {"a": Node(job=job, isolate=True)})).nodes] == [
        True
    ]


def test_stages_need_the_one_before_unless_they_say_otherwise() -> None:
    made = pipeline(
        "p",
        [
            PipelineStage(name="a", job=job),
            {"name": "b", "job": job},
            {"name": "c", "job": job, "needs": []},
            {"name": "d", "job": job, "needs": ["a"], "accepts_kickback_to": ["a"]},
        ],
        max_kickbacks=1,
    )

    shape = graph_of(made)
    assert [(node.name, node.needs) for node in shape.nodes] == [
        ("a", ()),
        ("b", ("a",)),
        ("c", ()),
        ("d", ("a",)),
    ]
    assert shape.max_kickbacks == 1


@pytest.mark.parametrize(
    ("stages", "match"),
    [
        ([], "no stages"),
        ([{"name": "a", "job": job}, {"name": "a", "job": job}], "two stages"),
        ([{"job": job}], "no name"),
        ([{"name": "", "job": job}], "without a name"),
        ([{"name": "a"}], "no job"),
        ([job], "mapping"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused(stages: Any, match: str) -> None:
    with pytest.raises(DeclarationError, match=match):
        pipeline("p", stages)


def test_a_sequence_runs_one_after_the_other() -> None:
    shape = graph_of(sequence("s", job, job, job))

    assert [(node.name, node.needs) for node in shape.nodes] == [
        ("step-0", ()),
        ("step-1", ("step-0",)),
        ("step-2", ("step-1",)),
    ]
    assert shape.slots == 1


def test_parallel_takes_a_list_or_a_mapping_and_stops_for_nothing() -> None:
    listed, named = graph_of(parallel("p", [job, job])), graph_of(parallel("p", {"x": job}, 2))

    assert [node.name for node in listed.nodes] == ["task-0", "task-1"]
    assert [node.name for node in named.nodes] == ["x"]
    assert named.slots == 2
    assert not listed.stop_on_error
    assert all(node.needs == () for node in listed.nodes)
