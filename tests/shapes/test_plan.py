from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.conditions import predicate
from runs.kernel.errors import LoopError
from runs.kernel.jsonable import canonical_json
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, parallel
from runs.shapes.plan import assert_graph, copy_job_meta, job_meta, render_plan
from runs.shapes.steps import command_job, fn_job, gate_job


def work(_ctx: Any) -> None: ...


FLOW = dag(
    "flow",
    {
        "build": Node(job=fn_job("build", work), desc="makes it", gate="it is small"),
        "check": Node(
            job=command_job("check", "pytest -q", target="build"),
            needs="build",
            optional=True,
            accepts_kickback_to=["build"],
            timeout_ms=5,
        ),
        "ask": Node(
            job=approval("ask", "Ship?", target="build"),
            needs=["check", "build"],
            when=[predicate(lambda _c, _l: True, "on a weekday"), lambda _c, _l: True],
            isolate=True,
            accepts_kickback_to=["build"],
        ),
        "ship": Node(job=parallel("ship", {"eu": work}), needs="ask"),
    },
    max_kickbacks={"build": 2},
)


def test_meta_is_the_declared_shape_in_declaration_order() -> None:
    meta = job_meta(FLOW)

    assert meta == {
        "kind": "dag",
        "name": "flow",
        "maxKickbacks": {"build": 2},
        "nodes": [
            {
                "name": "build",
                "needs": [],
                "desc": "makes it",
                "gate": "it is small",
                "isolate": False,
                "optional": False,
                "job": {"kind": "fn", "name": "build"},
            },
            {
                "name": "check",
                "needs": ["build"],
                "timeoutMs": 5,
                "isolate": False,
                "optional": True,
                "acceptsKickbackTo": ["build"],
                "job": {
                    "kind": "command",
                    "name": "check",
                    "command": ["pytest", "-q"],
                    "target": "build",
                },
            },
            {
                "name": "ask",
                "needs": ["check", "build"],
                "isolate": True,
                "optional": False,
                "when": ["on a weekday", "check"],
                "acceptsKickbackTo": ["build"],
                "job": {"kind": "approval", "name": "ask", "question": "Ship?", "target": "build"},
            },
            {
                "name": "ship",
                "needs": ["ask"],
                "isolate": False,
                "optional": False,
                "job": {
                    "kind": "dag",
                    "name": "ship",
                    "nodes": [
                        {
                            "name": "eu",
                            "needs": [],
                            "isolate": False,
                            "optional": False,
                            "job": None,
                        }
                    ],
                },
            },
        ],
    }
    canonical_json(meta)


def test_a_hand_written_job_has_no_meta() -> None:
    assert job_meta(work) is None
    assert job_meta(dag) is None


def test_a_wrapper_shows_the_wrapped_jobs_meta() -> None:
    inner = gate_job("g", lambda _c, _l: True)

    def wrapper(ctx: Any) -> Any:
        return inner(ctx)

    assert copy_job_meta(inner, wrapper) is wrapper
    assert job_meta(wrapper) == {"kind": "gate", "name": "g", "gate": ["check"]}
    assert job_meta(copy_job_meta(wrapper, lambda ctx: ctx)) == job_meta(inner)


def test_a_plan_is_read_by_people() -> None:
    assert render_plan(FLOW) == [
        "dag flow (4 nodes, send-backs: build 2)",
        "  build",
        "    fn build",
        "  check [needs build; optional]",
        "    command check, sends back to build",
        "  ask [needs check, build; when on a weekday and check; isolated]",
        "    approval ask, sends back to build",
        "  ship [needs ask]",
        "    dag ship (1 node)",
        "      eu",
        "        (a hand-written job)",
    ]
    assert render_plan(None, "  ") == ["  (a hand-written job)"]
    assert render_plan(job_meta(FLOW)) == render_plan(FLOW)


def test_only_what_is_asserted_is_compared() -> None:
    assert_graph(
        FLOW,
        {
            "name": "flow",
            "max_kickbacks": {"build": 2},
            "nodes": {
                "build": None,
                "ask": {"needs": ["build", "check"], "when": True, "kind": "approval"},
                "check": {"optional": True, "when": False, "accepts_kickback_to": ["build"]},
                "ship": {"job": {"nodes": {"eu": {"needs": []}}, "exact_nodes": True}},
            },
        },
    )


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ({"name": "other"}, r"name: expected 'other', found 'flow'"),
        ({"max_kickbacks": 2}, "maxKickbacks"),
        ({"nodes": {"gone": {}}}, r"nodes\[gone\]"),
        ({"nodes": {"build": {}}, "exact_nodes": True}, r"nodes: expected \['build'\]"),
        ({"nodes": {"build": {"needs": ["x"]}}}, r"nodes\[build\]\.needs: expected \['x'\]"),
        ({"nodes": {"build": {"when": True}}}, r"nodes\[build\]\.when"),
        ({"nodes": {"ship": {"kind": "fn"}}}, r"nodes\[ship\]\.kind: expected 'fn', found 'dag'"),
        ({"nodes": {"ship": {"body": {"name": "x"}}}}, r"nodes\[ship\]\.name"),
    ],
)
def test_a_difference_is_named_by_its_path(shape: Any, match: str) -> None:
    with pytest.raises(AssertionError, match=match):
        assert_graph(FLOW, shape)


def test_a_job_without_a_shape_cannot_be_asserted() -> None:
    with pytest.raises(LoopError) as caught:
        assert_graph(work, {})

    assert caught.value.code == "CONFIG"
