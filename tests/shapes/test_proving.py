from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.jsonable import sha256_bytes
from runs.shapes.plan import job_meta
from runs.shapes.proving import KINDS, prove


def kinds(result: RunResult) -> list[str]:
    return [str(event.kind) for event in result.events][1:-1]


def proof_of(result: RunResult) -> Any:
    (event,) = (event for event in result.events if event.kind == "proof")
    return event.fields


@pytest.mark.parametrize("kind", KINDS)
def test_r65_data_of_every_kind_is_recorded(kind: str) -> None:
    given = {"kind": kind, "data": {"passed": 21}, "title": "Tests", "meta": {"by": ["ci"]}}
    result = run(prove("report", lambda _ctx: given))

    assert kinds(result) == ["job:start", "proof", "job:end"]
    assert proof_of(result) == {"name": "report", "artifact": given}
    assert result.outcome.status == "pass"
    assert result.outcome.summary == "Tests"
    assert result.outcome.data == {"proof": given}


def test_r66_the_bytes_of_a_file_are_kept_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "page.html").write_bytes(b"<p>green</p>")
    given = {"kind": "html", "path": "out/page.html", "description": "what it looks like"}
    result = run(prove("page", lambda _ctx: given), cwd=tmp_path)
    digest = sha256_bytes(b"<p>green</p>")

    assert kinds(result) == ["job:start", "artifact:stored", "proof", "job:end"]
    assert result.artifacts[digest] == b"<p>green</p>"
    assert proof_of(result)["artifact"] == {
        **given,
        "mediaType": "text/html",
        "digest": digest,
        "byteLength": 12,
    }


@pytest.mark.parametrize("key", ["media_type", "mediaType"])
def test_r65_a_media_type_of_its_own_wins(tmp_path: Path, key: str) -> None:
    (tmp_path / "shot").write_bytes(b"x")
    given = {"kind": "image", "path": tmp_path / "shot", key: "image/avif"}

    artifact = proof_of(run(prove("shot", lambda _ctx: given)))["artifact"]
    assert artifact["mediaType"] == "image/avif"


async def _later(_ctx: Any) -> Any:
    return {"kind": "json", "data": 1}


def test_r67_the_producer_may_be_async() -> None:
    assert run(prove("later", _later)).outcome.passed


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "NoneType"),
        ("text", "str"),
        ({}, "kind None"),
        ({"kind": "video", "data": 1}, "'video'"),
        ({"kind": "json"}, "exactly one"),
        ({"kind": "json", "data": 1, "path": "x"}, "exactly one"),
        ({"kind": "json", "data": {1, 2}}, "no JSON"),
        ({"kind": "json", "data": 1, "meta": {"a": object()}}, "no JSON"),
        ({"kind": "json", "data": 1, "title": 3}, "title"),
        ({"kind": "json", "data": 1, "mime": "x"}, "mime"),
        ({"kind": "image", "path": "gone.png"}, "'gone.png'"),
        ({"kind": "image", "path": "."}, "no file"),
        ({"kind": "image", "path": 3}, "no path"),
    ],
)
def test_r65_r67_what_is_no_proof_fails_with_validation(
    given: Any, says: str, tmp_path: Path
) -> None:
    result = run(prove("report", lambda _ctx: given), cwd=tmp_path)

    assert kinds(result) == ["job:start", "error", "job:end"]
    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "VALIDATION"
    assert "'report'" in str(result.outcome.summary)
    assert says in str(result.outcome.summary)


@pytest.mark.parametrize("raised", [ValueError("no data"), KeyError(), LoopError("QUOTA", "spent")])
def test_r67_a_producer_that_raises_fails_with_validation(raised: Exception) -> None:
    def broken(_ctx: Any) -> None:
        raise raised

    result = run(prove("report", broken))
    assert kinds(result) == ["job:start", "error", "job:end"]
    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "VALIDATION"


def test_r227_proof_data_holds_no_secret() -> None:
    result = run(prove("r", lambda _ctx: {"kind": "table", "data": [["password: hunter2"]]}))

    assert "hunter2" not in json.dumps([event.to_wire() for event in result.events], default=str)


@pytest.mark.parametrize("make", [lambda: prove("", print), lambda: prove("x", {"kind": "json"})])  # type: ignore[arg-type]  # wrong on purpose
def test_a_proof_needs_a_name_and_a_function(make: Any) -> None:
    with pytest.raises(DeclarationError):
        make()


def test_r186_its_meta_says_what_it_is() -> None:
    assert job_meta(prove("report", print)) == {"kind": "prove", "name": "report"}
