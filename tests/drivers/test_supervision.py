"""The registry of runs on this machine (runs.md R284-R287)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.jsonl import RecordFile, read_record
from runs.drivers.memory import RunResult, run
from runs.drivers.supervision.live import Live
from runs.drivers.supervision.registry import list_runs, read_run, run_progress, runs_root
from runs.kernel.events import Event
from runs.kernel.outcomes import Outcome
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.steps import fn_job


def nothing(_ctx: Any) -> None: ...


FLOW = dag("Nice flow", {"a": nothing, "b": Node(job=nothing, needs="a")})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OBVERSA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def supervised(job: Any = FLOW, **options: Any) -> RunResult:
    return run(job, supervise=True, **{"monitor": False, **options})


def test_the_root_is_the_home_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OBVERSA_HOME")
    monkeypatch.setenv("HOME", "/somewhere")

    assert runs_root() == Path("/somewhere/.obversa/runs")


def test_a_run_is_registered_under_its_id(home: Path, tmp_path: Path) -> None:
    result = supervised(cwd=tmp_path)
    assert result.run_id is not None
    folder = home / "runs" / result.run_id

    assert result.run_id.startswith("nice-flow-")
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.jsonl",
        "proofs.jsonl",
        "status.json",
    ]
    status = json.loads((folder / "status.json").read_text())
    assert status["runId"] == result.run_id
    assert (status["pid"], status["cwd"]) == (os.getpid(), str(tmp_path))
    assert (status["title"], status["status"]) == ("Nice flow", "pass")
    assert status["startedAt"] <= status["endedAt"] <= status["updatedAt"]
    assert status["shape"]["name"] == "Nice flow"
    assert status["live"]["lastOutcome"]["status"] == "pass"
    assert "active" not in status["live"]
    told = read_record(folder / "events.jsonl").events
    assert [event.to_wire() for event in told] == [event.to_wire() for event in result.events]


def test_the_page_is_on_under_supervision_unless_it_is_off() -> None:
    result = run(FLOW, supervise=True)
    assert result.monitor is not None
    result.monitor.close()
    assert supervised().monitor is None


def test_a_running_step_is_seen_from_outside() -> None:
    seen: list[Any] = []
    job = fn_job("look", lambda ctx: seen.append(read_run("seen")))
    supervised(dag("g", {"a": Node(job=job, timeout_ms=60_000)}), run_id="seen")

    (status,) = seen
    assert (status["status"], status["alive"]) == ("running", True)
    assert read_run("seen")["alive"] is False  # type: ignore[index]  # it is there


def test_proofs_have_an_index_of_their_own(home: Path) -> None:
    def work(ctx: Any) -> None:
        for name in ("first", "second"):
            ctx.emit("proof", name=name, artifact={"kind": "json", "data": 1})

    supervised(fn_job("a", work), run_id="proofs")
    path = home / "runs" / "proofs" / "proofs.jsonl"

    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == [
        "first",
        "second",
    ]
    status = read_run("proofs")
    assert status is not None
    assert status["evidence"] == {"count": 2, "indexPath": str(path), "latest": "second"}


def test_what_cannot_be_registered_runs_all_the_same(home: Path) -> None:
    home.write_text("no folder")

    assert supervised().outcome.status == "pass"


def test_a_folder_that_goes_away_fails_no_run(home: Path) -> None:
    def work(_ctx: Any) -> None:
        folder = home / "runs" / "gone"
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()

    assert supervised(fn_job("a", work), run_id="gone").outcome.status == "pass"
    assert read_run("gone") is None


@pytest.mark.parametrize("run_id", ["unknown", "", "..", "../x", "a/b", "A", "-a", None, 5])
def test_an_id_that_names_none_gives_nothing(run_id: Any) -> None:
    supervised(run_id="known")

    assert read_run(run_id) is None
    assert run_progress(run_id) is None


def test_the_list_has_the_newest_first_and_passes_over_what_is_broken(home: Path) -> None:
    for number, started in (("one", 1), ("two", 3), ("three", 2)):
        folder = home / "runs" / number
        folder.mkdir(parents=True)
        (folder / "status.json").write_text(json.dumps({"runId": number, "startedAt": started}))
    for name, content in (("broken", "{"), ("list", "[]"), ("Odd Name", "{}")):
        (home / "runs" / name).mkdir()
        (home / "runs" / name / "status.json").write_text(content)

    assert [status["runId"] for status in list_runs()] == ["two", "three", "one"]
    assert list_runs(root=home / "nothing") == []


def test_a_process_that_is_gone_is_not_alive(home: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    folder = home / "runs" / "r"
    folder.mkdir(parents=True)
    for pid, alive in ((gone.pid, False), (os.getpid(), True), (0, False), (True, False)):
        (folder / "status.json").write_text(json.dumps({"status": "running", "pid": pid}))
        assert read_run("r")["alive"] is alive  # type: ignore[index]  # it is there
    (folder / "status.json").write_text(json.dumps({"status": "pass", "pid": os.getpid()}))
    assert read_run("r")["alive"] is False  # type: ignore[index]  # it is there


def test_progress_shows_the_last_lines(home: Path) -> None:
    def work(ctx: Any) -> None:
        for number in range(30):
            ctx.log(f"line {number}")

    supervised(fn_job("a", work), run_id="long")
    path = home / "runs" / "long" / "events.jsonl"
    with path.open("ab") as file:
        file.write(b'{"kind":"log","message":"torn')

    progress = run_progress("long")
    assert progress is not None
    assert len(progress["lines"]) == 10
    assert any("line 29" in line for line in progress["lines"])
    assert not any("torn" in line for line in progress["lines"])
    assert "blocker" not in progress
    assert run_progress("long", lines=0)["lines"] == []  # type: ignore[index]  # it is there


def test_progress_reads_no_more_than_the_end(home: Path) -> None:
    folder = home / "runs" / "big"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"status": "running", "pid": 1}))
    file = RecordFile.open(folder / "events.jsonl")
    for number in range(400):
        message = f"line {number} " + "x" * 2_000
        file.write(Event("log", (), {"level": "info", "message": message}))
    file.close()

    progress = run_progress("big", lines=1_000)
    assert progress is not None
    assert len(progress["lines"]) < 200
    assert "line 399" in progress["lines"][-1]


@pytest.mark.parametrize(
    ("events", "blocker"),
    [
        ([("limit:pause", {"code": "QUOTA", "reason": "used up"})], ("limit-pause", "used up")),
        ([("error", {"message": "no such file", "code": "BODY"})], ("error", "no such file")),
        (
            [("loop:condition", {"which": "until", "result": {"met": False, "reason": "red"}})],
            ("gate-failing", "red"),
        ),
        (
            [
                ("error", {"message": "x"}),
                ("dag:node", {"node": "a", "phase": "done", "outcome": {"status": "pass"}}),
            ],
            None,
        ),
        (
            [
                ("error", {"message": "x"}),
                ("loop:condition", {"which": "until", "result": {"met": True, "reason": "ok"}}),
            ],
            None,
        ),
        ([], None),
    ],
)
def test_what_blocks_a_run_is_told(home: Path, events: Any, blocker: Any) -> None:
    folder = home / "runs" / "r"
    folder.mkdir(parents=True)
    file = RecordFile.open(folder / "events.jsonl")
    for kind, fields in events:
        file.write(Event(kind, ("l",), fields))
    file.close()
    for status, expected in (("running", blocker), ("pass", None)):
        (folder / "status.json").write_text(json.dumps({"status": status, "pid": 1}))
        progress = run_progress("r")
        assert progress is not None
        told = progress.get("blocker")
        assert (None if told is None else (told["kind"], told["reason"])) == expected


def test_a_pause_is_not_alive_and_blocks_nothing() -> None:
    supervised(approval("ok", "Ship?"), run_id="paused")
    progress = run_progress("paused")

    assert progress is not None
    assert (progress["status"], progress["alive"]) == ("paused", False)
    assert "blocker" not in progress


def test_the_current_item_is_the_one_with_the_nearest_deadline_then_the_newest() -> None:
    live = Live()
    outcome = Outcome(status="pass").to_json()

    def take(kind: str, path: tuple[str, ...], ts: int, **fields: Any) -> None:
        live.take(Event(kind, path, fields, ts=ts))

    take("dag:node", ("g",), 1, node="a", phase="start", timeoutMs=500)
    take("dag:node", ("g",), 2, node="b", phase="start", timeoutMs=100)
    take("job:start", ("g", "c"), 3, label="c")
    told = live.to_json()
    assert told["current"] == {
        "kind": "dag-node",
        "path": ["g", "b"],
        "node": "b",
        "startedAt": 2,
        "timeoutMs": 100,
        "deadlineAt": 102,
    }
    assert len(told["active"]) == 3
    for name in "ab":
        take("dag:node", ("g",), 4, node=name, phase="done", outcome=outcome)
    take("job:start", ("g", "d"), 5, label="d")
    assert live.to_json()["current"]["label"] == "d"
    take("dag:node", ("g",), 6, node="x", phase="start", reused=True)
    take("loop:iteration", ("l",), 7, iteration=3)
    take("engine:usage", ("g",), 8, usage={"kind": "reported", "inputTokens": 5})
    take("engine:usage", ("g",), 9, usage={"kind": "unknown"})
    told = live.to_json()
    assert len(told["active"]) == 2
    assert (told["iteration"], told["lastOutcome"]) == (3, outcome)
    assert told["usage"]["inputTokens"] == 5
    assert (told["usage"]["calls"], told["usage"]["unmeasuredCalls"]) == (2, 1)
