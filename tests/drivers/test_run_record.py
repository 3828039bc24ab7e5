"""`run(record_to=...)`: what the file holds, and what is refused before it is touched."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.errors import RunBusy
from runs.drivers.jsonl import read_record
from runs.drivers.memory import run
from runs.kernel.errors import LoopError
from runs.kernel.outcomes import Outcome
from runs.kernel.state import fold
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.steps import fn_job


def nothing(_ctx: Any) -> None: ...


FLOW = dag("g", {"a": nothing, "b": Node(job=nothing, needs="a")})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_file_holds_every_event_in_order(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    heard: list[dict[str, Any]] = []
    result = run(FLOW, record_to=path, on_event=heard.append, params={"n": 1})

    assert [{**event, "session": 1} for event in heard] == lines(path)
    assert heard == [event.to_wire() for event in result.events]
    assert result.record_path == heard[0]["recordPath"] == str(path)
    assert result.run_id is None
    assert fold(read_record(path).events).ended == result.outcome


def test_the_workspace_of_a_graph_is_recorded(tmp_path: Path) -> None:
    result = run(FLOW, record_to=tmp_path / "r", cwd=tmp_path)
    (anchor,) = (event for event in result.events if event.kind == "workflow:start")

    assert anchor.fields["workspace"] == str(tmp_path)


def test_the_file_a_workflow_came_from_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("hello")
    result = run(FLOW, source=tmp_path / "flow.py")

    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    told = {"path": str(tmp_path / "flow.py"), "sha256": digest}
    assert result.events[0].fields["source"] == told


def test_auto_names_the_file_after_the_run(tmp_path: Path) -> None:
    result = run(FLOW, record_to="auto", cwd=tmp_path)

    assert result.run_id is not None
    assert result.run_id.startswith("g-")
    assert len(result.run_id) == len("g-") + 6
    path = tmp_path / ".obversa" / "records" / f"{result.run_id}.jsonl"
    assert result.record_path == str(path)
    assert lines(path)[0]["runId"] == result.run_id
    assert (tmp_path / ".obversa" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Ship It, now!", "ship-it-now-"),
        ("—", "run-"),
        ("x" * 40, "x" * 32 + "-"),
        ("-a-", "a-"),
    ],
)
def test_a_generated_id_is_the_slug_and_six_digits(tmp_path: Path, name: str, slug: str) -> None:
    result = run(fn_job(name, nothing), record_to="auto", cwd=tmp_path)

    assert result.run_id is not None
    assert result.run_id[:-6] == slug
    int(result.run_id[-6:], 16)


def test_an_auto_record_is_short_and_the_result_is_not(tmp_path: Path) -> None:
    job = fn_job("a", lambda _ctx: Outcome(status="pass", data={"rows": [1, 2]}))
    result = run(job, record_to="auto", cwd=tmp_path, run_id="r-1")

    assert result.outcome.data == {"rows": [1, 2]}
    assert lines(Path(str(result.record_path)))[-1]["outcome"] == {"status": "pass"}


@pytest.mark.parametrize("linked", [".obversa", ".obversa/records", ".obversa/records/r.jsonl"])
def test_auto_follows_no_link(tmp_path: Path, linked: str) -> None:
    cwd, elsewhere = tmp_path / "cwd", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (cwd / linked).parent.mkdir(parents=True)
    (cwd / linked).symlink_to(elsewhere)

    with pytest.raises(LoopError, match=r"is kept there|are not kept through it") as refused:
        run(FLOW, record_to="auto", cwd=cwd, run_id="r")
    assert refused.value.code == "CONFIG"
    assert list(elsewhere.iterdir()) == []


def test_auto_keeps_a_gitignore_that_is_there(tmp_path: Path) -> None:
    (tmp_path / ".obversa").mkdir()
    (tmp_path / ".obversa" / ".gitignore").write_text("mine\n")
    run(FLOW, record_to="auto", cwd=tmp_path)

    assert (tmp_path / ".obversa" / ".gitignore").read_text() == "mine\n"


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"on_callback": "sometimes"}, ValueError),
    ({"params": [1]}, ValueError),
    ({"params": {"x": float("nan")}}, ValueError),
    ({"run_id": "No Good"}, LoopError),
    ({"engine": "nobody"}, LoopError),
    ({"heartbeat_ms": -1}, ValueError),
    ({"heartbeat_ms": 1.5}, ValueError),
    ({"heartbeat_ms": True}, ValueError),
    ({"resume": True, "record_to": None}, TypeError),
    ({"resume": True, "record_to": "auto"}, TypeError),
    ({"source": "/no/such/file.py"}, LoopError),
    ({"unknown": 1}, TypeError),
]


@pytest.mark.parametrize(("options", "error"), REFUSED)
def test_what_cannot_be_is_refused_before_anything(
    tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    path = tmp_path / "r"
    path.write_text("an old record\n")
    heard: list[Any] = []

    with pytest.raises(error):
        run(FLOW, **{"record_to": path, "on_event": heard.append, "cwd": tmp_path, **options})
    assert heard == []
    assert path.read_text() == "an old record\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["r"]


def test_a_record_that_cannot_be_opened_does_not_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run(FLOW, record_to=tmp_path / "file" / "below")

    assert result.outcome.status == "pass"
    assert result.record_path is None


def test_a_second_session_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    path = tmp_path / "r"
    refusals: list[str] = []

    def work(_ctx: Any) -> None:
        for resume in (True, False):
            try:
                run(FLOW, record_to=path, resume=resume)
            except RunBusy as busy:
                refusals.append(busy.code)

    result = run(fn_job("a", work), record_to=path)

    assert result.outcome.status == "pass"
    assert refusals == ["busy", "busy"]
    assert [event.kind for event in read_record(path).events].count("run:start") == 1
    assert run(FLOW, record_to=path, resume=True).outcome.status == "pass"


def test_heartbeats_say_that_the_run_lives(tmp_path: Path) -> None:
    beaten = threading.Event()

    def note(event: dict[str, Any]) -> None:
        if event["kind"] == "heartbeat":
            beaten.set()

    def work(_ctx: Any) -> None:
        assert beaten.wait(20)

    result = run(fn_job("a", work), record_to=tmp_path / "r", heartbeat_ms=5, on_event=note)

    assert result.outcome.status == "pass"
    assert {"kind": "heartbeat", "path": []}.items() <= next(
        line for line in lines(tmp_path / "r") if line["kind"] == "heartbeat"
    ).items()
    assert result.events[-1].kind == "run:end"


def test_an_event_sink_that_raises_on_every_event_harms_no_record(tmp_path: Path) -> None:
    def raises(_event: Any) -> None:
        raise RuntimeError("listener")

    result = run(FLOW, record_to=tmp_path / "r", on_event=raises)

    assert result.outcome.status == "pass"
    assert [line["kind"] for line in lines(tmp_path / "r")] == [
        event.kind for event in result.events
    ]


def test_a_question_and_its_answer_are_recorded(tmp_path: Path) -> None:
    job = approval("ok", "Ship it?", answer=lambda _request: {"approved": True})
    run(job, record_to=tmp_path / "r")

    kinds = [line["kind"] for line in lines(tmp_path / "r")]
    assert kinds[:5] == [
        "run:start",
        "job:start",
        "callback-requested",
        "callback-claimed",
        "callback-submitted",
    ]
