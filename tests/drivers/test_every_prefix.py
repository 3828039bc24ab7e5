"""Whatever beginning of a record a crash leaves behind, the next session ends as the run would."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.callbacks import (
    CallbackClient,
    create_callback_client,
    direct_router,
    replay_callback_client,
)
from runs.drivers.jsonl import read_record
from runs.drivers.memory import RunResult, run
from runs.kernel.conditions import failed, passed, predicate
from runs.kernel.events import CALLBACK_KINDS
from runs.kernel.outcomes import Outcome, kickback
from runs.kernel.state import fold
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, pipeline
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job

YES = {"approved": True}
Ran = Counter[str]


def step(ran: Ran, name: str, does: Callable[[Any], Any] = lambda _ctx: None) -> Any:
    def work(ctx: Any) -> Any:
        ran["/".join(ctx.path)] += 1
        return does(ctx)

    return fn_job(name, work)


def release(ran: Ran) -> Any:
    """A question answered in the process, with steps before and after it."""
    return pipeline(
        "release",
        [
            {"name": "build", "job": step(ran, "build"), "retry_safe": True},
            {"name": "ok", "job": approval("ok", "Ship it?", answer=lambda _request: YES)},
            {"name": "ship", "job": step(ran, "ship"), "retry_safe": True},
        ],
    )


def nested(ran: Ran) -> Any:
    """Graphs in a graph, side by side, with branches that depend on what failed."""

    def inner(name: str) -> Any:
        nodes = {
            "x": Node(job=step(ran, "x"), retry_safe=True),
            "y": Node(job=step(ran, "y"), needs="x", retry_safe=True),
        }
        return dag(name, nodes)

    def fails(_ctx: Any) -> Outcome:
        return Outcome(status="fail", summary="red")

    return dag(
        "outer",
        {
            "left": Node(job=inner("left"), retry_safe=True),
            "right": Node(job=inner("right"), retry_safe=True),
            "red": Node(job=step(ran, "red", fails), optional=True, retry_safe=True),
            "rescue": Node(
                job=step(ran, "rescue"), needs="red", when=failed("red"), retry_safe=True
            ),
            "never": Node(job=step(ran, "never"), needs="red", when=passed("red")),
            "last": Node(job=step(ran, "last"), needs=["left", "right", "rescue"], retry_safe=True),
        },
        concurrency=2,
    )


def reviewed(ran: Ran) -> Any:
    """Work that is sent back once and then stands."""

    def check(ctx: Any) -> Any:
        return kickback("build", "once more") if ctx.graph.attempt == 1 else None

    return dag(
        "reviewed",
        {
            "build": Node(job=step(ran, "build"), retry_safe=True),
            "check": Node(
                job=step(ran, "check", check),
                needs="build",
                accepts_kickback_to=["build"],
                retry_safe=True,
            ),
            "ship": Node(job=step(ran, "ship"), needs="check", retry_safe=True),
        },
        max_kickbacks=2,
    )


def resumed(
    path: Path, job: Any, lines: list[bytes], *, torn: bytes = b"", history: Any = None
) -> tuple[RunResult, CallbackClient]:
    """Take up what a crash left of a record, with the questions as they stood."""
    path.write_bytes(b"".join(lines) + torn)
    told = [event for event in read_record(path).events if event.kind in CALLBACK_KINDS]
    client = replay_callback_client(history or [event.callback_wire() for event in told])
    return run(job, record_to=path, resume=True, callbacks=client, cwd=path.parent), client


def ended(lines: list[bytes]) -> dict[str, list[str]]:
    """What each step's recorded starts came to."""
    found: dict[str, list[str]] = {}
    for event in map(json.loads, lines):
        if event["kind"] == "job:end":
            found.setdefault("/".join(event["path"]), []).append(event["outcome"]["status"])
    return found


@pytest.mark.parametrize("make", [release, nested, reviewed])
def test_every_beginning_of_a_record_comes_to_the_same_end(tmp_path: Path, make: Any) -> None:
    whole: Ran = Counter()
    path = tmp_path / "whole.jsonl"
    client = create_callback_client()
    result = run(make(whole), record_to=path, callbacks=client, cwd=tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    passes = {
        name: len(statuses)
        for name, statuses in ended(lines).items()
        if name in whole and set(statuses) == {"pass"}
    }

    for length in range(len(lines) + 1):
        again: Ran = Counter()
        kept = lines[:length]
        torn = lines[length][: len(lines[length]) // 2] if length < len(lines) else b""
        second, asked = resumed(tmp_path / "crashed.jsonl", make(again), kept, torn=torn)

        where = f"after {length} lines of {make.__name__}"
        assert second.outcome.status == result.outcome.status, where
        assert second.outcome.data == result.outcome.data, where
        # What is recorded as passed is never done twice, and all the rest is done.
        for name, count in passes.items():
            assert again[name] == count - len(ended(kept).get(name, ())), f"{name} {where}"
        assert "outer/never" not in again
        requests = [event for event in asked.history() if event["kind"] == "callback-requested"]
        assert len(requests) == len([e for e in client.history() if "request" in e]), where
        events = read_record(tmp_path / "crashed.jsonl").events
        assert fold(events).ended == second.outcome, where
        assert [event.kind for event in events].count("run:end") == 1 + (length == len(lines))


def asking(ran: Ran) -> Any:
    """A question that somebody else answers."""
    return pipeline(
        "asking",
        [
            {"name": "build", "job": step(ran, "build"), "retry_safe": True},
            {"name": "ok", "job": approval("ok", "Ship it?")},
            {"name": "ship", "job": step(ran, "ship"), "retry_safe": True},
        ],
    )


def respond(client: CallbackClient) -> None:
    for request in client.list_pending():
        assert direct_router(client, request, "ada", lambda _request: YES).ok


def test_a_question_is_put_once_whatever_the_crash_left(tmp_path: Path) -> None:
    path = tmp_path / "whole.jsonl"
    client = create_callback_client()
    for _ in range(2):
        run(asking(Counter()), record_to=path, resume=True, callbacks=client, cwd=tmp_path)
        respond(client)
    lines = path.read_bytes().splitlines(keepends=True)
    answered = next(n for n, line in enumerate(lines) if b'"session":2' in line)
    crashed = tmp_path / "crashed.jsonl"

    for length in range(len(lines) + 1):
        again: Ran = Counter()
        # The answer came before the second session, wherever that one dies.
        history = client.history() if length > answered else None
        result, asked = resumed(crashed, asking(again), lines[:length], history=history)
        if result.outcome.status == "paused":
            respond(asked)
            result = run(
                asking(again), record_to=crashed, resume=True, callbacks=asked, cwd=tmp_path
            )

        assert result.outcome.status == "pass", length
        done = ended(lines[:length])
        for name in ("asking/build", "asking/ship"):
            assert again[name] == 1 - len(done.get(name, ())), f"{name} after {length} lines"
        told = [event["kind"] for event in asked.history()]
        assert told.count("callback-requested") == told.count("callback-submitted") == 1


def looping(ran: Ran) -> Any:
    """Two rounds of a graph, with conditions and hooks that are the author's code."""
    nodes = {
        "x": Node(job=step(ran, "x"), retry_safe=True),
        "y": Node(job=step(ran, "y"), needs="x", retry_safe=True),
    }
    return loop(
        "rounds",
        dag("body", nodes),
        start=predicate(lambda _ctx, _last: True, "may start"),
        until=predicate(lambda ctx, _last: ctx.iteration >= 2, "two rounds"),
        review=step(ran, "review"),
        max=4,
    )


def test_a_loop_comes_to_its_end_whatever_the_crash_left(tmp_path: Path) -> None:
    whole: Ran = Counter()
    path = tmp_path / "whole.jsonl"
    assert run(looping(whole), record_to=path, cwd=tmp_path).outcome.status == "pass"
    lines = path.read_bytes().splitlines(keepends=True)

    for length in range(len(lines) + 1):
        again: Ran = Counter()
        result, _ = resumed(tmp_path / "crashed.jsonl", looping(again), lines[:length])

        assert result.outcome.status == "pass", length
        # At most both rounds again; what the round it was in had finished is taken over.
        assert again["rounds"] == 1, length
        assert max(again["rounds/body/x"], again["rounds/body/y"]) <= 2, length
        events = read_record(tmp_path / "crashed.jsonl").events
        assert fold(events).ended == result.outcome
