from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from runs import summarize_record
from tests.report.records import BEGIN, at, call, end, graph, node, record, sent_back, start
from tests.report.test_lines import ANY_EVENT


def runs_of(summary: Any, name: str) -> Any:
    return next(one["runs"] for one in summary["nodes"] if one["node"] == name)


def test_an_empty_record_is_all_null() -> None:
    assert summarize_record([]) == {
        "name": None,
        "startedAt": None,
        "endedAt": None,
        "outcome": None,
        "usage": {
            "inputTokens": 0,
            "outputTokens": 0,
            "cacheReadInputTokens": 0,
            "unmeasuredCalls": 0,
        },
        "monitor": None,
        "nodes": [],
        "lines": [],
    }


def test_a_run_of_a_node_has_every_field() -> None:
    summary = summarize_record(
        record(
            start(runId="r-1"),
            graph("a"),
            node("a", "start"),
            call("g", "a", inputTokens=1, outputTokens=1),
            at("g", "a", kind="engine:tool", name="Read", phase="use", target="x"),
            at("g", "a", kind="engine:tool", name="Read", phase="use", target="x"),
            at("g", "a", kind="error", code="BODY", message="oh"),
            node("a", "done", status="fail"),
        )
    )

    assert summary["name"] == "r-1"
    assert runs_of(summary, "a") == [
        {
            "attempt": 1,
            "startedAt": BEGIN + 2000,
            "endedAt": BEGIN + 7000,
            "outcome": {"status": "fail"},
            "kickback": None,
            "engineCalls": 1,
            "tools": [{"name": "Read", "count": 2, "targets": ["x"]}],
            "lines": ["error BODY: oh"],
        }
    ]


def test_an_accepted_send_back_is_attached_to_the_next_run_of_its_target() -> None:
    summary = summarize_record(
        record(
            start(),
            graph("a", "b"),
            node("a", "start"),
            node("a", "done", status="pass"),
            node("b", "start"),
            node("b", "done", status="fail"),
            sent_back("b", "a"),
            node("a", "start", attempt=2),
        )
    )

    first, second = runs_of(summary, "a")
    assert first["kickback"] is None
    assert second["kickback"] == {
        "from": "b",
        "reason": "add the header row",
        "count": 1,
        "limit": 1,
        "note": None,
    }
    assert runs_of(summary, "b")[0]["lines"] == []


def test_a_rejected_send_back_and_one_that_never_ran_are_lines() -> None:
    events = [start(), graph("a", "b"), node("b", "start"), node("b", "done", status="fail")]
    refused = summarize_record(record(*events, sent_back("b", "a", accepted=False)))
    killed = summarize_record(record(*events, sent_back("b", "a")))

    assert runs_of(refused, "b")[0]["lines"] == [
        "kickback rejected b -> a [1/1] add the header row"
    ]
    assert killed["lines"] == ["kickback accepted b -> a [1/1] add the header row"]


def test_the_end_of_the_run_tells_its_usage_else_the_calls_are_summed() -> None:
    calls = [call(inputTokens=10, outputTokens=1, cacheReadInputTokens=4), call()]

    told = summarize_record(record(start(), *calls, end()))
    summed = summarize_record(record(start(), *calls))

    assert told["usage"] == {
        "inputTokens": 12_345,
        "outputTokens": 678,
        "cacheReadInputTokens": None,
        "unmeasuredCalls": None,
    }
    assert summed["usage"] == {
        "inputTokens": 10,
        "outputTokens": 1,
        "cacheReadInputTokens": 4,
        "unmeasuredCalls": 1,
    }


def test_several_sessions_are_counted_together() -> None:
    first = [start(), call(inputTokens=10, outputTokens=1), end("paused")]
    again = [start(session=2), call(inputTokens=5, outputTokens=1)]
    total = {"inputTokens": 99, "outputTokens": 9}

    assert summarize_record(record(*first, *again, end()))["usage"]["inputTokens"] == 15
    whole = summarize_record(record(*first, *again, end(totalUsage=total)))
    assert whole["usage"]["inputTokens"] == 99


def test_the_latest_end_of_an_attempt_stands() -> None:
    summary = summarize_record(
        record(
            graph("a"),
            node("a", "start"),
            node("a", "done", status="paused", summary="Ship?"),
            node("a", "done", status="pass"),
        )
    )

    [only] = runs_of(summary, "a")
    assert only["outcome"] == {"status": "pass"}
    assert only["endedAt"] == BEGIN + 3000
    assert only["lines"] == ["paused: Ship?"]


def test_nodes_stand_in_the_order_they_were_seen_and_one_that_never_ran_has_no_start() -> None:
    summary = summarize_record(
        record(
            graph("a", "b"),
            node("b", "start"),
            node("a", "skip", status="pass", data={"skipped": True}),
        )
    )

    assert [one["node"] for one in summary["nodes"]] == ["b", "a"]
    assert runs_of(summary, "a")[0]["startedAt"] is None
    assert summary["name"] == "g"


def test_a_loop_around_the_graph_is_told_in_lines_of_the_run() -> None:
    loop = [
        at("l", kind="loop:start", max=2),
        at("l", kind="loop:iteration", iteration=1),
        graph("a", path=("l", "g")),
        node("a", "start", path=("l", "g")),
        node("a", "done", path=("l", "g"), status="pass"),
        at("l", kind="loop:review", outcome={"status": "fail"}),
    ]

    summary = summarize_record(record(start(), *loop))

    assert summary["lines"] == ["l: loop start max 2", "l: iteration 1", "l: review fail"]
    assert [one["node"] for one in summary["nodes"]] == ["a"]


def test_heartbeats_and_checkpoints_add_nothing_and_an_unknown_kind_its_name() -> None:
    quiet = [at(kind="heartbeat"), at(kind="interaction:checkpoint"), at(kind="engine:text")]

    assert summarize_record(record(*quiet, at(kind="acme:blip")))["lines"] == ["acme:blip"]


def test_times_may_be_written_as_the_api_writes_them() -> None:
    events = [{"kind": "run:start", "path": [], "ts": "2026-01-01T00:00:00.000Z"}]

    assert summarize_record(events)["startedAt"] == BEGIN


def test_what_happens_to_a_question_stands_where_it_was_asked() -> None:
    request = {"requestId": "ok#1#ab", "decisionText": "Ship it?"}
    events = [
        graph("ok"),
        node("ok", "start"),
        at("g", "ok", kind="callback-requested", request=request),
        at(kind="callback-claimed", requestId="ok#1#ab", routerId="ada"),
        at(kind="callback-submitted", requestId="ok#1#ab", routerId="ada", response={}),
        at(kind="callback-claimed", requestId="other#1#ab", routerId="ben"),
    ]

    summary = summarize_record(record(*events))

    [only] = runs_of(summary, "ok")
    assert only["lines"] == ["question: Ship it?", "claimed by ada", "answered by ada"]
    assert summary["lines"] == ["claimed by ben"]


@given(first=ANY_EVENT, second=ANY_EVENT)
def test_the_summary_of_any_events_is_an_object_for_json(first: Any, second: Any) -> None:
    summary = summarize_record([graph("a"), node("a", "start"), first, second])

    assert isinstance(json.dumps(summary), str)
    assert list(summary) == [
        "name",
        "startedAt",
        "endedAt",
        "outcome",
        "usage",
        "monitor",
        "nodes",
        "lines",
    ]
