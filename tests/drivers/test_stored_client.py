"""The stored client on a local store (gates.md section 8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import gates
from gates import create_stored_callback_client, local_callbacks
from runs.drivers.callbacks import CallbackClient, direct_router
from runs.drivers.errors import StorageError
from runs.drivers.memory import RunResult, run
from runs.drivers.storage import client as stored
from runs.drivers.storage.client import StoredCallbackClient
from runs.drivers.storage.local import create_local_run_storage
from runs.drivers.storage.values import Limits
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, sequence
from runs.shapes.steps import fn_job

ROOT = Path(__file__).resolve().parents[2]
YES = {"approved": True}


def question(gate_id: str = "release", subject: Any = "v1", **more: Any) -> CallbackRequest:
    schema = {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    }
    return create_callback_gate(
        gate_id=gate_id,
        gate_version=1,
        decision_text="Ship it?",
        response_schema=schema,
        input=subject,
        **more,
    )


def kinds(client: Any, request_id: str | None = None) -> list[str]:
    return [str(event["kind"]) for event in client.history(request_id)]


def envelopes(path: Path, run_id: str = "r") -> list[Any]:
    storage = create_local_run_storage(path)
    return list(storage.event_store.read(storage.stream(run_id)))


def test_the_whole_life_of_a_question_over_fresh_clients(tmp_path: Path) -> None:
    asked = question()
    local_callbacks(tmp_path, "r").post(asked)
    assert [one.request_id for one in local_callbacks(tmp_path, "r").list_pending()] == [
        asked.request_id
    ]

    token = local_callbacks(tmp_path, "r").claim(asked.request_id, "a").claim_token
    blocked = local_callbacks(tmp_path, "r").claim(asked.request_id, "b")
    assert (blocked.ok, blocked.kind, blocked.router_id) == (False, "claimed", "a")
    assert local_callbacks(tmp_path, "r").list_pending() == []
    assert token is not None
    assert local_callbacks(tmp_path, "r").release(asked.request_id, token).ok
    assert direct_router(local_callbacks(tmp_path, "r"), asked, "b", lambda _request: YES).ok
    assert kinds(local_callbacks(tmp_path, "r")) == [
        "callback-requested",
        "callback-claimed",
        "callback-released",
        "callback-claimed",
        "callback-submitted",
    ]


def test_an_event_is_stored_in_its_envelope(tmp_path: Path) -> None:
    local_callbacks(tmp_path, "r").post(question())
    opened, envelope = envelopes(tmp_path)

    assert opened["type"] == "run:opened"
    assert envelope["type"] == "callback:history-recorded"
    assert (envelope["version"], envelope["revision"]) == (1, 2)
    assert (envelope["correlationId"], envelope["causationId"]) == ("r", None)
    assert envelope["payload"] == {
        "event": {"kind": "callback-requested", "request": question().to_wire()}
    }


def test_a_run_that_is_not_stored_has_no_client(tmp_path: Path) -> None:
    storage = create_local_run_storage(tmp_path)
    with pytest.raises(StorageError) as refused:
        create_stored_callback_client(storage, "r")
    assert refused.value.code == "INVALID_STORED_VALUE"

    local_callbacks(tmp_path, "r").post(question())
    assert len(create_stored_callback_client(storage, "r").list_pending()) == 1
    with pytest.raises(TypeError):
        create_stored_callback_client(storage)  # type: ignore[call-overload]  # wrong on purpose


def test_what_is_refused_or_known_appends_nothing(tmp_path: Path) -> None:
    client, asked = local_callbacks(tmp_path, "r"), question()
    client.post(asked)
    client.post(question(presentation={"theme": "dark"}))
    token = client.claim(asked.request_id, "a").claim_token
    assert token is not None
    before = envelopes(tmp_path)

    assert client.claim(asked.request_id, "b").kind == "claimed"
    assert client.claim("nothing", "b").kind == "missing"
    assert client.release(asked.request_id, "wrong").kind == "not-owner"
    assert client.submit(asked.request_id, token, "a", "0" * 64, YES).kind == "stale"
    client.supersede("nothing", "x")
    assert envelopes(tmp_path) == before


def test_a_superseding_question_is_one_batch(tmp_path: Path) -> None:
    client = local_callbacks(tmp_path, "r")
    client.post(question(subject="v1"))
    client.post(question(subject="v2"))

    assert kinds(client) == ["callback-requested", "callback-superseded", "callback-requested"]
    folder = next((tmp_path / "events").rglob("segments"))
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{start:016d}.jsonl" for start in (1, 2, 3)
    ]


def test_runs_do_not_supersede_each_other(tmp_path: Path) -> None:
    for run_id, subject in (("r1", "v1"), ("r2", "v2")):
        local_callbacks(tmp_path, run_id).post(question(subject=subject))

    assert len(local_callbacks(tmp_path, "r1").list_pending()) == 1


def test_other_events_of_the_stream_are_passed_over(tmp_path: Path) -> None:
    client = local_callbacks(tmp_path, "r")
    storage = create_local_run_storage(tmp_path)
    other = stored._envelope("r", "graph:node-dispatched", {"event": {"kind": "no"}})
    storage.event_store.append(storage.stream("r"), 1, [other])
    client.post(question())

    assert kinds(client) == ["callback-requested"]


@pytest.mark.parametrize(
    "payload", [{}, {"event": {"kind": "callback-requested"}}, {"event": {}, "x": 1}, {"x": 1}]
)
def test_a_corrupt_callback_event_raises(tmp_path: Path, payload: Any) -> None:
    client = local_callbacks(tmp_path, "r")
    storage = create_local_run_storage(tmp_path)
    bad = stored._envelope("r", stored.RECORDED, payload)
    storage.event_store.append(storage.stream("r"), 1, [bad])

    for look in (client.list_pending, client.history, lambda: client.post(question())):
        with pytest.raises((StorageError, ValueError)):
            look()
    assert len(envelopes(tmp_path)) == 2


def test_an_edited_question_is_never_shown(tmp_path: Path) -> None:
    client = local_callbacks(tmp_path, "r")
    storage = create_local_run_storage(tmp_path)
    wire = {**question().to_wire(), "decisionText": "Delete everything?"}
    edited = {"event": {"kind": "callback-requested", "request": wire}}
    storage.event_store.append(
        storage.stream("r"), 1, [stored._envelope("r", stored.RECORDED, edited)]
    )

    with pytest.raises(ValueError, match="was changed"):
        client.list_pending()


def test_limits_and_secrets_leave_the_question_as_it_was(tmp_path: Path) -> None:
    client, asked = local_callbacks(tmp_path, "r"), question()
    client.post(asked)
    policy = Limits().policy()
    guarded = create_stored_callback_client(
        create_local_run_storage(tmp_path, policy=policy, known_secrets=["hunter\n2"]), "r"
    )
    token = guarded.claim(asked.request_id, "a").claim_token
    assert token is not None
    for response, code in (
        ({**YES, "note": "x" * 300_000}, "STORAGE_LIMIT_EXCEEDED"),
        ({**YES, "note": "it is hunter\n2"}, "KNOWN_SECRET"),
        ({**YES, "hunter\n2": 1}, "KNOWN_SECRET"),
    ):
        with pytest.raises(StorageError) as refused:
            guarded.submit(asked.request_id, token, "a", asked.digest, response)
        assert refused.value.code == code

    assert kinds(client) == ["callback-requested", "callback-claimed"]
    assert guarded.submit(asked.request_id, token, "a", asked.digest, YES).ok


def test_text_and_numbers_survive_the_store(tmp_path: Path) -> None:
    asked = question(subject={"nul": "a\0b", "n": 1e16, "text": "Résumé — ✓ 🚀"})
    client = local_callbacks(tmp_path, "r")
    client.post(asked)

    (read,) = local_callbacks(tmp_path, "r").list_pending()
    assert read == asked


def test_of_fifty_threads_one_claims(tmp_path: Path) -> None:
    asked = question()
    local_callbacks(tmp_path, "r").post(asked)
    client, results = local_callbacks(tmp_path, "r"), []
    together = threading.Barrier(50)

    def claim(number: int) -> None:
        together.wait(30)
        results.append(client.claim(asked.request_id, f"router-{number}"))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [result.ok for result in results].count(True) == 1
    assert {result.kind for result in results} == {None, "claimed"}
    assert kinds(client) == ["callback-requested", "callback-claimed"]


CLAIMER = """
import json, sys
from gates import local_callbacks
client = local_callbacks(sys.argv[1], "r")
print("ready", flush=True)
sys.stdin.readline()
result = client.claim(sys.argv[2], sys.argv[3])
print(json.dumps(result.to_wire()))
assert "django" not in sys.modules
"""


def test_of_many_processes_one_claims(tmp_path: Path) -> None:
    asked = question()
    local_callbacks(tmp_path, "r").post(asked)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, str(tmp_path), asked.request_id, f"router-{number}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(8)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate(timeout=60)[0]) for process in processes]

    assert [process.returncode for process in processes] == [0] * 8
    (winner,) = (one for one in told if one["ok"])
    losers = [one for one in told if not one["ok"]]
    assert {one["kind"] for one in losers} == {"claimed"}
    client = local_callbacks(tmp_path, "r")
    assert kinds(client) == ["callback-requested", "callback-claimed"]
    assert client.release(asked.request_id, winner["claimToken"]).ok


def test_contention_that_never_ends_is_told(tmp_path: Path, monkeypatch: Any) -> None:
    client = local_callbacks(tmp_path, "r")

    def always_late(*_args: Any) -> int:
        raise StorageError("REVISION_CONFLICT", "somebody was faster")

    monkeypatch.setattr(StoredCallbackClient, "_append", always_late)
    with pytest.raises(StorageError, match="written too often") as refused:
        client.post(question())
    assert refused.value.code == "REVISION_CONFLICT"


def test_every_name_of_the_gates_loads_no_framework() -> None:
    code = (
        "import gates, sys\n"
        "for name in gates.__all__: getattr(gates, name)\n"
        "print('django' in sys.modules)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "False"
    assert gates.local_callbacks is local_callbacks


def test_a_file_is_no_folder_to_keep_questions_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(StorageError) as refused:
        local_callbacks(tmp_path / "file", "r")
    assert refused.value.code == "UNSAFE_STORAGE_PATH"


def test_a_question_that_the_store_refuses_fails_its_step_alone(tmp_path: Path) -> None:
    def start(subject: str) -> RunResult:
        flow = dag(
            "g",
            {
                "ok": Node(job=approval("ok", "Ship it?", input=subject), optional=True),
                "other": fn_job("other", lambda _ctx: "done"),
            },
        )
        return run(flow, callbacks=local_callbacks(tmp_path, "r"))

    refused = start("x" * 300_000)
    assert refused.outcome.status == "pass"
    assert isinstance(refused.outcome.data, dict)
    assert refused.outcome.data["ok"]["status"] == "fail"
    assert "too large" in refused.outcome.data["ok"]["summary"]
    assert [event.fields["code"] for event in refused.events if event.kind == "error"] == [
        "VALIDATION"
    ]
    # What fits is asked the next time.
    assert start("small").outcome.status == "paused"


def test_what_became_of_a_step_is_never_guessed_when_it_cannot_be_asked(tmp_path: Path) -> None:
    class Full(CallbackClient):
        def post(self, request: Any) -> None:
            raise StorageError("STORAGE_LIMIT_EXCEEDED", "the store is full.")

    record = tmp_path / "r"
    began: list[str] = []
    flow = dag("g", {"a": fn_job("a", lambda _ctx: began.append("a"))})
    run(flow, record_to=record, cwd=tmp_path)
    lines = record.read_bytes().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if b'"job:end"' in line)
    record.write_bytes(b"".join(lines[:end]))

    for _ in range(2):
        with pytest.raises(StorageError, match="full"):
            run(flow, record_to=record, resume=True, cwd=tmp_path, callbacks=Full())
    assert began == ["a"]


def test_a_question_whose_subject_changes_back_is_asked_again_as_it_was(tmp_path: Path) -> None:
    def start(version: str) -> RunResult:
        build = fn_job("build", lambda _ctx: version)
        flow = sequence("release", build, approval("ok", "Ship it?"))
        return run(flow, callbacks=local_callbacks(tmp_path, "r"))

    for version in ("v1", "v2", "v1"):
        assert start(version).outcome.status == "paused"
    client = local_callbacks(tmp_path, "r")
    (pending,) = client.list_pending()
    assert pending.input == {"step-0": "v1"}
    assert direct_router(client, pending, "ada", lambda _request: YES).ok
    assert start("v1").outcome.status == "pass"

    # Its answer stands whatever was asked in between, and nothing dead stays listed (D8).
    assert start("v2").outcome.status == "paused"
    assert start("v1").outcome.status == "pass"
    assert client.list_pending() == []
