"""The store of events in a folder, and what names a storage (graph.md K56-K90)."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.errors import StorageError
from runs.drivers.storage.local import RunStorage, create_local_run_storage
from runs.drivers.storage.values import Limits
from runs.kernel.jsonable import canonical_json

STREAM = {"namespace": "local", "streamId": "r"}


def event(event_id: str = "e1", **changes: Any) -> dict[str, Any]:
    return {
        "eventId": event_id,
        "type": "graph:thing",
        "version": 1,
        "timestamp": "2026-01-31T12:00:00.000Z",
        "correlationId": "r",
        "causationId": None,
        "payload": {"n": 1, "unknown": [1.5, "x\0y"]},
        **changes,
    }


def code_of(call: Any, *args: Any) -> str:
    with pytest.raises(StorageError) as refused:
        call(*args)
    return refused.value.code


@pytest.fixture
def storage(tmp_path: Path) -> RunStorage:
    return create_local_run_storage(tmp_path / "store")


def limited(tmp_path: Path, secrets: tuple[str, ...] = (), **limits: int) -> RunStorage:
    policy = Limits(**limits).policy()
    return create_local_run_storage(tmp_path / "store", policy=policy, known_secrets=secrets)


def test_a_batch_gets_the_next_revisions(storage: RunStorage) -> None:
    store = storage.event_store
    assert store.read(STREAM) == []
    assert store.append(STREAM, 0, [event("a"), event("b")]) == 2
    assert store.append(STREAM, 2, [event("c")]) == 3

    found = store.read(STREAM)
    assert [(one["eventId"], one["revision"]) for one in found] == [("a", 1), ("b", 2), ("c", 3)]
    assert found[0] == {**event("a"), "envelopeVersion": 1, "streamId": "r", "revision": 1}
    assert [one["eventId"] for one in store.read(STREAM, 1)] == ["b", "c"]
    assert store.read(STREAM, 3) == []


def test_an_event_is_a_copy(storage: RunStorage) -> None:
    mine = event("a")
    storage.event_store.append(STREAM, 0, [mine])
    mine["payload"]["n"] = 2

    assert storage.event_store.read(STREAM)[0]["payload"] == event()["payload"]


def test_of_two_writers_at_one_revision_one_wins(storage: RunStorage) -> None:
    together = threading.Barrier(8)
    told: list[object] = []

    def write(number: int) -> None:
        together.wait(20)
        try:
            told.append(storage.event_store.append(STREAM, 0, [event(f"e{number}")]))
        except StorageError as error:
            told.append(error.code)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, told)) == ["1", *["REVISION_CONFLICT"] * 7]
    assert len(storage.event_store.read(STREAM)) == 1


def test_an_exact_retry_is_the_same_append(storage: RunStorage) -> None:
    store = storage.event_store
    batch = [event("a"), event("b")]
    assert store.append(STREAM, 0, batch) == 2
    store.append(STREAM, 2, [event("c")])

    assert store.append(STREAM, 0, batch) == 2
    assert code_of(store.append, STREAM, 0, [event("a")]) == "REVISION_CONFLICT"
    assert code_of(store.append, STREAM, 0, [event("x"), event("b")]) == "REVISION_CONFLICT"
    assert code_of(store.preflight_append, STREAM, 0, batch) == "REVISION_CONFLICT"
    with pytest.raises(StorageError) as refused:
        store.append(STREAM, 9, [event("z")])
    assert refused.value.details == {"expectedRevision": 9, "actualRevision": 3}


def test_an_event_id_is_there_once(storage: RunStorage) -> None:
    store = storage.event_store
    store.append(STREAM, 0, [event("a")])

    assert code_of(store.append, STREAM, 1, [event("a")]) == "DUPLICATE_EVENT_ID"
    assert code_of(store.append, STREAM, 1, [event("b"), event("b")]) == "DUPLICATE_EVENT_ID"
    other = {"namespace": "other", "streamId": "r"}
    assert store.append(other, 0, [event("a")]) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"extra": 1},
        {"eventId": ""},
        {"eventId": " a"},
        {"eventId": "a\n"},
        {"eventId": "\ufeffa"},
        {"eventId": "é" * 129},
        {"version": 0},
        {"version": True},
        {"version": 1.0},
        {"timestamp": "2026-02-30T12:00:00.000Z"},
        {"timestamp": "2026-01-31T12:00:60.000Z"},
        {"timestamp": "2026-01-31T12:00:00Z"},
        {"timestamp": "2026-01-31T12:00:00.000+00:00"},
        {"causationId": ""},
        {"payload": float("nan")},
    ],
)
def test_a_malformed_event_is_refused(storage: RunStorage, changes: dict[str, Any]) -> None:
    assert code_of(storage.event_store.append, STREAM, 0, [event(**changes)]) == (
        "INVALID_STORED_VALUE"
    )
    assert storage.event_store.read(STREAM) == []


@pytest.mark.parametrize(
    ("stream", "expected", "events"),
    [
        ({"namespace": "local"}, 0, [event()]),
        ({"namespace": "-x", "streamId": "r"}, 0, [event()]),
        (STREAM, -1, [event()]),
        (STREAM, True, [event()]),
        (STREAM, 0, []),
        (STREAM, 0, event()),
    ],
)
def test_a_malformed_append_is_refused(
    storage: RunStorage, stream: Any, expected: Any, events: Any
) -> None:
    assert code_of(storage.event_store.append, stream, expected, events) == "INVALID_STORED_VALUE"


def test_sizes_come_before_secrets_and_secrets_before_revisions(tmp_path: Path) -> None:
    payload = {"text": "hunter2" * 20}
    size = len(canonical_json(payload))
    limits = {"max_event_payload_bytes": size, "max_append_batch_bytes": size * 4}
    store = limited(tmp_path, ("hunter2",), **limits).event_store

    too_long = event(payload={"text": "hunter2" * 20 + "x"})
    assert code_of(store.append, STREAM, 9, [too_long]) == "STORAGE_LIMIT_EXCEEDED"
    assert code_of(store.append, STREAM, 9, [event(payload=payload)]) == "KNOWN_SECRET"
    plain = [event(f"e{n}", payload={"text": "x" * 100}) for n in range(3)]
    assert code_of(store.append, STREAM, 9, plain) == "STORAGE_LIMIT_EXCEEDED"
    assert code_of(store.append, STREAM, 9, [event()]) == "REVISION_CONFLICT"


def test_a_stream_keeps_the_limits_it_began_under(tmp_path: Path) -> None:
    limited(tmp_path).event_store.append(STREAM, 0, [event("a", payload={"text": "x" * 9_000})])
    smaller = limited(tmp_path, max_event_payload_bytes=100, max_append_batch_bytes=1_000)

    assert code_of(smaller.event_store.read, STREAM) == "INVALID_STORED_VALUE"
    assert code_of(smaller.event_store.append, STREAM, 1, [event("b")]) == "INVALID_STORED_VALUE"
    rotated = limited(tmp_path, ("graph:thing",))
    assert len(rotated.event_store.read(STREAM)) == 1


def segment_of(tmp_path: Path, number: int = 1) -> Path:
    folder = next((tmp_path / "store" / "events").rglob("segments"))
    return folder / f"{number:016d}.jsonl"


def test_the_layout_is_the_one_that_is_written_down(tmp_path: Path, storage: RunStorage) -> None:
    storage.event_store.append(STREAM, 0, [event("a"), event("b")])
    names = [hashlib.sha256(name).hexdigest() for name in (b"local", b"r")]
    folder = tmp_path / "store" / "events" / "namespaces" / names[0] / "streams" / names[1]
    path = folder / "segments" / "0000000000000001.jsonl"

    lines = path.read_bytes().split(b"\n")
    assert len(lines) == 4
    assert lines[-1] == b""
    body = b"".join(line + b"\n" for line in lines[:2])
    assert f'"sha256":"{hashlib.sha256(body).hexdigest()}"'.encode() in lines[2]
    assert path.stat().st_mode & 0o777 == 0o400
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list((folder / ".tmp").iterdir()) == []


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-1],
        lambda content: content.replace(b'"eventId":"a"', b'"eventId":"b"'),
        lambda content: content.replace(b'"revision":1', b'"revision":2'),
        lambda content: content.replace(b'"eventCount":1', b'"eventCount":2'),
        lambda content: content.replace(b"graph:thing", b"graph:th\xff\xffg"),
        lambda content: b"\n" + content,
        lambda content: content + b" " * 2_000_000,
        lambda content: b"",
    ],
)
def test_changed_bytes_are_refused(
    tmp_path: Path, storage: RunStorage, change: Any, fresh: bool
) -> None:
    storage.event_store.append(STREAM, 0, [event("a")])
    path = segment_of(tmp_path)
    content = change(path.read_bytes())
    path.unlink()
    path.write_bytes(content)
    again = create_local_run_storage(tmp_path / "store") if fresh else storage

    assert code_of(again.event_store.read, STREAM) == "CORRUPT_EVENT_STREAM"


def test_gaps_strangers_and_links_are_refused(tmp_path: Path, storage: RunStorage) -> None:
    store = storage.event_store
    for number, name in enumerate("abc"):
        store.append(STREAM, number, [event(name)])
    kept = segment_of(tmp_path, 2).read_bytes()
    segment_of(tmp_path, 2).unlink()
    assert code_of(store.read, STREAM) == "CORRUPT_EVENT_STREAM"

    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(kept)
    segment_of(tmp_path, 2).symlink_to(elsewhere)
    assert code_of(store.read, STREAM) == "UNSAFE_STORAGE_PATH"
    segment_of(tmp_path, 2).unlink()
    segment_of(tmp_path, 2).write_bytes(kept)
    assert len(store.read(STREAM)) == 3

    (segment_of(tmp_path).parent / "stranger").write_text("x")
    assert code_of(store.read, STREAM) == "CORRUPT_EVENT_STREAM"


def test_a_linked_folder_is_refused(tmp_path: Path, storage: RunStorage) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store" / "events").symlink_to(tmp_path / "elsewhere")

    assert code_of(storage.event_store.append, STREAM, 0, [event()]) == "UNSAFE_STORAGE_PATH"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_record_names_the_stores_and_no_secret(tmp_path: Path) -> None:
    storage = create_local_run_storage(tmp_path, "ns", known_secrets=["hunter2"])
    assert storage.record["eventStore"] == {
        "schemaVersion": 1,
        "name": "local-jsonl",
        "version": "1",
        "configDigest": storage.record["eventStore"]["configDigest"],  # type: ignore[index,call-overload]  # the record is JSON
    }
    assert storage.record["policy"] == Limits().policy()
    assert "hunter2" not in repr(storage)
    assert create_local_run_storage(tmp_path, "ns").record == storage.record
    assert create_local_run_storage(tmp_path / "moved", "ns").record != storage.record


@pytest.mark.parametrize(
    "change",
    [
        {"retention": "for-ever"},
        {"maxArtifactBytes": 0},
        {"maxAppendBatchBytes": 5},
        {"maxTotalArtifactBytesPerRun": 5},
        {"unknown": 1},
    ],
)
def test_a_policy_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    policy = {**Limits().policy(), **change}
    with pytest.raises(StorageError) as refused:
        create_local_run_storage(tmp_path, policy=policy)
    assert refused.value.code == "INVALID_STORED_VALUE"
