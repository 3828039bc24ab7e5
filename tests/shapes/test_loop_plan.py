"""What a loop declares: its meta, its lines in a plan, assertions on it (runs.md R188-R191)."""

from __future__ import annotations

import json

import pytest

from runs import approval, assert_graph, dag, fn_job, job_meta, loop, never, pipeline, render_plan


def step(name: str) -> object:
    return fn_job(name, lambda ctx: None)


def full() -> object:
    body = pipeline("work", [{"name": "write", "job": step("write")}])
    return loop(
        "refine",
        body,
        start=never,
        until=[never, lambda ctx, last: True],
        stop_on=never,
        review=approval("ok", "Good?"),
        max=4,
        max_review_restarts=2,
        check_first=True,
        no_progress=3,
    )


def test_the_meta_of_a_loop_r188() -> None:
    meta = job_meta(full())
    assert meta is not None
    assert json.loads(json.dumps(meta)) == meta
    body, review = meta.pop("body"), meta.pop("reviewJob")
    assert (body["kind"], review["kind"]) == ("dag", "approval")
    assert meta == {
        "kind": "loop",
        "name": "refine",
        "max": 4,
        "noProgress": 3,
        "checkFirst": True,
        "start": ["never"],
        "gate": ["never", "check"],
        "stopOn": ["never"],
        "review": True,
        "maxReviewRestarts": 2,
    }


def test_a_plan_shows_bounds_body_and_review_r190() -> None:
    assert render_plan(job_meta(full())) == [
        (
            "loop refine (at most 4 rounds; at most 2 rejections; stalls after 3 flat rounds; "
            "starts when never; until never and check; stops on never; checks first)"
        ),
        "  dag work (1 node)",
        "    write",
        "      fn write",
        "  reviewed by",
        "    approval ok",
    ]
    assert render_plan(loop("l", step("a"))) == ["loop l", "  fn a"]


def test_assertions_reach_into_loops_r191() -> None:
    job = dag("g", {"refine": full()})
    inside = {"body": {"nodes": {"write": {"kind": "fn"}}}}
    assert_graph(full(), {"kind": "loop", "max": 4, **inside})
    assert_graph(job, {"nodes": {"refine": {"kind": "loop", "job": inside}}})
    with pytest.raises(AssertionError, match=r"body\.nodes\[write\]\.kind"):
        assert_graph(full(), {"body": {"nodes": {"write": {"kind": "command"}}}})
