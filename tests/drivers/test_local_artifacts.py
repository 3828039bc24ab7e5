"""The store of artifacts in a folder (graph.md K74-K88)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.errors import StorageError
from runs.drivers.storage.local import RunStorage, create_local_run_storage
from runs.kernel.jsonable import canonical_json
from tests.drivers.test_local_storage import code_of, limited

SCOPE = {"namespace": "local", "runId": "r"}


@pytest.fixture
def storage(tmp_path: Path) -> RunStorage:
    return create_local_run_storage(tmp_path / "store")


def artifact(content: bytes = b"hello", **changes: Any) -> dict[str, Any]:
    return {
        "bytes": content,
        "mediaType": "text/plain",
        "purpose": "result",
        "contentMode": "exact",
        **changes,
    }


def test_bytes_are_kept_under_their_digest(storage: RunStorage) -> None:
    store = storage.artifact_store
    reference = store.write(SCOPE, artifact())

    assert reference == {
        "schemaVersion": 1,
        "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "byteLength": 5,
        "mediaType": "text/plain",
        "purpose": "result",
    }
    assert store.read(SCOPE, reference) == b"hello"
    assert store.write(SCOPE, artifact()) == reference


def test_a_digest_that_was_printed(storage: RunStorage) -> None:
    text = '{"schemaVersion":1,"kind":"synthetic-result","text":"' + "x" * 65_536 + '"}'
    more = {"mediaType": "application/json", "purpose": "synthetic-result"}
    (reference,) = storage.artifact_store.preflight_write(SCOPE, [artifact(text.encode(), **more)])

    assert reference["byteLength"] == 65_591
    assert reference["digest"] == (
        "sha256:45ccde9ad00cd4b72ab6c8aced15a85c3199c7ceab300942bf678ae1fa3d40cc"
    )
    assert len(canonical_json({"artifact": reference})) == 194
    assert code_of(storage.artifact_store.read, SCOPE, reference) == "ARTIFACT_NOT_ADMITTED"


def test_only_the_exact_reference_of_the_run_reads(storage: RunStorage) -> None:
    store = storage.artifact_store
    reference = store.write(SCOPE, artifact())
    for scope, changes in (
        ({"namespace": "other", "runId": "r"}, {}),
        ({"namespace": "local", "runId": "other"}, {}),
        (SCOPE, {"purpose": "else"}),
        (SCOPE, {"mediaType": "text/html"}),
    ):
        assert code_of(store.read, scope, {**reference, **changes}) == "ARTIFACT_NOT_ADMITTED"
    second = store.write(SCOPE, artifact(purpose="else"))
    assert second["digest"] == reference["digest"]
    assert store.read(SCOPE, second) == b"hello"


def test_bytes_that_are_gone_or_changed_are_told(tmp_path: Path, storage: RunStorage) -> None:
    store = storage.artifact_store
    reference = store.write(SCOPE, artifact())
    blob = next((tmp_path / "store" / "artifacts").rglob("blobs/*"))
    blob.unlink()
    assert code_of(store.read, SCOPE, reference) == "ARTIFACT_NOT_FOUND"
    blob.write_bytes(b"hullo")
    assert code_of(store.read, SCOPE, reference) == "ARTIFACT_INTEGRITY"


def test_the_quota_counts_digests_once(tmp_path: Path) -> None:
    store = limited(
        tmp_path, max_artifact_bytes=6, max_total_artifact_bytes_per_run=10
    ).artifact_store
    store.write(SCOPE, artifact(b"12345"))
    store.write(SCOPE, artifact(b"12345", purpose="again"))
    assert code_of(store.write, SCOPE, artifact(b"1234567")) == "STORAGE_LIMIT_EXCEEDED"
    assert code_of(store.write, SCOPE, artifact(b"abcdef")) == "STORAGE_LIMIT_EXCEEDED"
    two = [artifact(b"abc"), artifact(b"def")]
    assert code_of(store.preflight_write, SCOPE, two) == "STORAGE_LIMIT_EXCEEDED"
    store.write(SCOPE, artifact(b"abcde"))

    other = limited(tmp_path, max_artifact_bytes=7, max_total_artifact_bytes_per_run=10)
    reference = store.preflight_write(SCOPE, [artifact(b"abcde")])[0]
    assert code_of(other.artifact_store.read, SCOPE, reference) == "INVALID_STORED_VALUE"


def test_of_two_who_want_the_last_of_the_quota_one_gets_it(tmp_path: Path) -> None:
    store = limited(
        tmp_path, max_artifact_bytes=6, max_total_artifact_bytes_per_run=10
    ).artifact_store
    together = threading.Barrier(4)
    told: list[object] = []

    def write(number: int) -> None:
        together.wait(20)
        try:
            told.append(store.write(SCOPE, artifact(f"12345{number}".encode()))["byteLength"])
        except StorageError as error:
            told.append(error.code)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(str, told)) == ["6", *["STORAGE_LIMIT_EXCEEDED"] * 3]


def test_secrets_are_refused_or_taken_out(tmp_path: Path) -> None:
    store = limited(tmp_path, ("hunter2", "hunter2-long", 'a"b')).artifact_store
    assert code_of(store.write, SCOPE, artifact(b"is hunter2")) == "KNOWN_SECRET"
    state = artifact(rb'{"a\"b":1}', contentMode="state", mediaType="application/x+json")
    assert code_of(store.write, SCOPE, state) == "KNOWN_SECRET"
    assert code_of(store.write, SCOPE, artifact(purpose="hunter2")) == "KNOWN_SECRET"
    assert code_of(store.write, SCOPE, artifact(sensitive=True)) == "SENSITIVE_CONTENT"
    broken = artifact(b"{", contentMode="state", mediaType="application/json")
    assert code_of(store.write, SCOPE, broken) == "INVALID_STORED_VALUE"

    free = artifact(b"say hunter2-long twice: hunter2", contentMode="free-text")
    reference = store.write(SCOPE, free)
    assert store.read(SCOPE, reference) == b"say [redacted] twice: [redacted]"
    assert code_of(store.write, SCOPE, artifact(b"\xff", contentMode="free-text")) == (
        "INVALID_STORED_VALUE"
    )


def test_a_deleted_run_is_forgotten(storage: RunStorage) -> None:
    store = storage.artifact_store
    reference = store.write(SCOPE, artifact())
    store.delete_run(SCOPE)
    store.delete_run(SCOPE)

    assert code_of(store.read, SCOPE, reference) == "ARTIFACT_NOT_ADMITTED"
