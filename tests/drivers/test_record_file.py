"""The file of a record by itself (runs.md R216-R227)."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.compact import LEFT_OUT, compact
from runs.drivers.errors import RunBusy
from runs.drivers.jsonl import RecordFile, read_record
from runs.kernel.events import Event


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def log(message: str, ts: int = 5) -> Event:
    return Event("log", ("g", "a"), {"level": "info", "message": message}, ts=ts)


def test_an_event_is_one_line_with_its_session(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.jsonl"
    file = RecordFile.open(path)
    file.write(log("Résumé — ✓"))

    # Before it is closed: a line is there the moment it happens.
    assert path.read_bytes().endswith(b"\n")
    assert lines(path) == [
        {
            "kind": "log",
            "ts": 5,
            "path": ["g", "a"],
            "level": "info",
            "message": "Résumé — ✓",
            "session": 1,
        }
    ]
    assert "✓" in path.read_text(encoding="utf-8")
    file.close()


def test_streamed_text_is_left_out(tmp_path: Path) -> None:
    file = RecordFile.open(tmp_path / "r")
    for kind in ("engine:text", "engine:thinking", "engine:tool"):
        file.write(Event(kind, (), {}))
    file.close()

    assert [event.kind for event in read_record(tmp_path / "r").events] == ["engine:tool"]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "r"
    written = [
        Event("run:start", (), {"session": 1, "params": {"n": 1e16, "nul": "\0"}}, ts=1),
        Event("newer:kind", ("a",), {"unknown": [1.0, None]}, ts=2),
    ]
    file = RecordFile.open(path)
    for event in written:
        file.write(event)
    file.close()

    record = read_record(path)
    assert [event.to_wire() for event in record.events] == [event.to_wire() for event in written]
    assert [event.seq for event in record.events] == [1, 2]
    assert (record.session_count, record.unreadable_count) == (1, 0)


def test_lines_that_hold_no_event_are_counted_and_blank_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(
        b'{"kind":"log","ts":1,"path":[]}\n\n  \nnot json\n[]\n5\n{"no":"kind"}\n\xff\xfe\n'
        b'{"kind":"log","ts":1,"path":"x"}\n{"kind":"log","n":NaN}\n{"kind":"log","ts":2,"path":[]}'
    )

    record = read_record(path)
    assert [event.ts for event in record.events] == [1, 2]
    assert record.unreadable_count == 7


def test_a_fresh_session_empties_the_file_and_a_resumed_one_appends(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for resume, expected in ((False, [1]), (True, [1, 2]), (True, [1, 2, 3]), (False, [1])):
        file = RecordFile.open(path, resume=resume)
        file.write(log("x"))
        file.close()
        assert [line["session"] for line in lines(path)] == expected


def test_a_torn_line_is_ended_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text('{"kind":"log","ts":1,"path":[],"session":1}\n{"kind":"lo')
    file = RecordFile.open(path, resume=True)
    file.write(log("x"))
    file.close()

    assert path.read_text().count('{"kind":"lo\n') == 1
    record = read_record(path)
    assert (len(record.events), record.unreadable_count) == (2, 1)
    assert file.past.unreadable_count == 1


def test_a_live_session_keeps_others_away_and_its_lines_whole(tmp_path: Path) -> None:
    path = tmp_path / "r"
    first = RecordFile.open(path)
    first.write(log("x"))
    before = path.read_bytes()
    for resume in (True, False):
        with pytest.raises(RunBusy, match="another live session"):
            RecordFile.open(path, resume=resume)
    assert path.read_bytes() == before
    first.close()

    again = RecordFile.open(path, resume=True)
    assert again.session == 2
    again.close()


def test_another_process_is_kept_away_too(tmp_path: Path) -> None:
    path = tmp_path / "r"
    file = RecordFile.open(path)
    code = (
        "import sys\nfrom pathlib import Path\nfrom runs.drivers.jsonl import RecordFile\n"
        "from runs.drivers.errors import RunBusy\n"
        "try:\n    RecordFile.open(Path(sys.argv[1]))\n"
        "except RunBusy:\n    print('busy')\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    file.close()

    assert told.stdout.strip() == "busy"


def test_a_failing_write_leaves_no_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r"
    file = RecordFile.open(path)
    write, full = os.write, {"is": False}

    def limited(handle: int, content: bytes) -> int:
        if full["is"]:
            raise OSError(errno.ENOSPC, "no space left")
        full["is"] = True
        # Half a line is all that still fits.
        return write(handle, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", limited)
    file.write(log("one"))
    file.write(log("two"))
    assert path.read_bytes().count(b"\n") == 0
    monkeypatch.setattr(os, "write", write)
    file.write(log("three"))
    file.close()

    assert [line["message"] for line in lines(path)] == ["one", "two", "three"]


def test_steps_questions_and_ends_are_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    file = RecordFile.open(tmp_path / "r")
    monkeypatch.setattr(os, "fsync", forced.append)
    counts = []
    kinds = ("run:start", "dag:node", "job:start", "log", "job:end", "callback-submitted")
    for kind in (*kinds, "run:abort", "run:end"):
        file.write(Event(kind, (), {}))
        counts.append(len(forced))
    file.close()

    assert counts == [1, 1, 2, 2, 2, 3, 4, 5]


def test_the_token_of_a_claim_is_not_written(tmp_path: Path) -> None:
    file = RecordFile.open(tmp_path / "r")
    file.write(Event("callback-claimed", (), {"requestId": "q", "claimToken": "s3cret-token"}))
    file.close()

    assert "s3cret-token" not in (tmp_path / "r").read_text()


def test_the_short_form_keeps_what_a_resume_needs() -> None:
    outcome = {
        "status": "paused",
        "summary": "s",
        "data": {"requestId": "q#1#d", "digest": "d", "input": {"big": 1}},
        "command": {"exitCode": 1},
    }
    done = compact(Event("dag:node", ("g",), {"node": "a", "outcome": outcome}))
    assert done.fields["outcome"] == {
        "status": "paused",
        "summary": "s",
        "data": {"requestId": "q#1#d", "digest": "d"},
        "command": {"exitCode": 1},
    }

    skipped = compact(Event("x", (), {"outcome": {"status": "pass", "data": {"skipped": True}}}))
    assert skipped.fields["outcome"]["data"] == {"skipped": True}
    plain = compact(Event("x", (), {"outcome": {"status": "pass", "data": [1, 2]}}))
    assert plain.fields["outcome"] == {"status": "pass"}
    verdict = compact(Event("condition:result", (), {"result": {"met": True, "output": "long"}}))
    assert verdict.fields["result"] == {"met": True, "output": LEFT_OUT}
    unsaid = compact(Event("condition:result", (), {"result": {"met": True}}))
    assert unsaid.fields["result"] == {"met": True}
    proof = compact(Event("proof", (), {"artifact": {"kind": "json", "data": {"x": 1}}}))
    assert proof.fields["artifact"] == {"kind": "json"}
    review = {"status": "fail", "data": 1, "revision": {"reason": "r"}}
    back = compact(Event("dag:kickback", (), {"review": review}))
    assert back.fields["review"] == {"status": "fail", "revision": {"reason": "r"}}
