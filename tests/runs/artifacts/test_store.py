from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile

from runs.artifacts import drafts, store
from runs.artifacts.store import ArtifactChanged, ArtifactMissing, ArtifactTooLarge
from tests.stores import client, place, prefix_of, spoil, using

BIG = 3 * store.CHUNK + 5


def read(digest: str, size: int | None = None) -> bytes:
    return b"".join(store.checked(digest, size))


def pieces(count: int, size: int = store.CHUNK) -> Iterator[bytes]:
    for number in range(count):
        yield bytes([number]) * size


def test_bytes_come_back_as_they_were_kept(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(b"x" * BIG)

    for content, whole in ((b"", b""), (b"small", b"small"), (path, b"x" * BIG)):
        digest, size = store.keep(content)

        assert (digest, size) == (f"sha256:{hashlib.sha256(whole).hexdigest()}", len(whole))
        assert read(digest, size) == whole


def test_bytes_are_taken_and_given_in_pieces(kind: str) -> None:
    digest, size = store.keep(pieces(9))

    assert size == 9 * store.CHUNK
    assert max(map(len, store.checked(digest, size))) <= store.CHUNK


def test_equal_bytes_lie_there_once(kind: str) -> None:
    kept = {store.keep(b"the same")[0] for _ in range(3)}
    store.keep(b"others")

    assert len(kept) == 1
    assert sorted(store.digests()) == sorted({*kept, store.keep(b"others")[0]})


def test_bytes_that_a_row_names_are_not_sent_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, _ = store.keep(b"known")
    sent: list[str] = []
    monkeypatch.setattr(drafts.Draft, "commit", lambda self, name: sent.append(name))

    store.keep(b"known", is_named=lambda given: given == digest)
    store.keep(b"unknown", is_named=lambda given: False)

    # On the file system it is only a name, and a changed file is mended on the way.
    assert len(sent) == (2 if kind == "files" else 1)


@pytest.mark.parametrize("spoilt", [b"y" * BIG, b"x" * (BIG - 1), b"x" * (BIG + 1), b""])
def test_changed_and_cut_bytes_are_never_given_whole(kind: str, spoilt: bytes) -> None:
    digest, size = store.keep(b"x" * BIG)
    spoil(digest, spoilt)

    for told in (size, None):
        got: list[bytes] = []
        with pytest.raises(ArtifactChanged, match=digest):
            got.extend(store.checked(digest, told))
        assert len(b"".join(got)) < max(1, len(spoilt))


def test_of_a_small_file_that_was_changed_nothing_is_given(kind: str) -> None:
    digest, size = store.keep(b"yes, ship it")
    spoil(digest, b"no, stop it!")

    with pytest.raises(ArtifactChanged, match="not those that were written"):
        next(store.checked(digest, size))


def test_bytes_that_are_gone_are_missing(kind: str) -> None:
    digest, size = store.keep(b"once")
    store.of().delete(store.name_of(digest))

    for ask in (lambda: read(digest), lambda: read(digest, size), lambda: store.open_bytes(digest)):
        with pytest.raises(ArtifactMissing, match=digest):
            ask()


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:" + "g" * 64, "../../etc/passwd", "SHA256:" + "a" * 64]
)
def test_what_is_no_digest_names_no_place(digest: str) -> None:
    with pytest.raises(ArtifactMissing, match="no digest"):
        store.name_of(digest)


def test_too_much_is_refused_while_it_comes_and_leaves_nothing(kind: str) -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    with pytest.raises(ArtifactTooLarge):
        store.keep(endless(), at_most=10_000)

    assert taken == 11
    assert list(store.digests()) == []
    assert leftovers() == []


def test_a_source_that_fails_leaves_nothing(kind: str) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        store.keep(broken())

    assert list(store.digests()) == []
    assert leftovers() == []


def test_what_is_refused_by_its_digest_leaves_nothing(kind: str) -> None:
    def admit(digest: str, size: int) -> None:
        raise ArtifactTooLarge(f"{digest} {size}")

    with pytest.raises(ArtifactTooLarge):
        store.keep(b"full", admit=admit)

    assert list(store.digests()) == []
    assert leftovers() == []


# The server of objects in tests cannot take the same name twice at once; real ones can.
@pytest.mark.parametrize("behind", ["files", "memory"])
def test_many_writers_of_the_same_bytes_do_not_meet(behind: str, tmp_path: Path) -> None:
    with using(behind, tmp_path):
        written_at_once()


def written_at_once() -> None:
    barrier = threading.Barrier(8)
    failed: list[Exception] = []

    def write() -> None:
        barrier.wait()
        try:
            store.keep(pieces(3))
        except (OSError, ValueError) as error:
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    (digest,) = store.digests()
    assert len(read(digest)) == 3 * store.CHUNK


def test_files_are_their_owners_alone(tmp_path: Path) -> None:
    with using("files", tmp_path):
        digest, _ = store.keep(b"a secret")

        assert place(digest).stat().st_mode & 0o777 == 0o600
        assert place(digest).parent.stat().st_mode & 0o777 == 0o700


def test_what_else_lies_in_the_store_is_none_of_it(kind: str) -> None:
    digest, _ = store.keep(b"ours")
    for name in ("README", "ab/notes.txt", "zz/" + "0" * 62, "abc/" + "0" * 62):
        store.of().save(name, ContentFile(b"theirs"))

    assert list(store.digests()) == [digest]


def test_an_archive_has_a_place_of_its_own_where_one_is_set(tmp_path: Path) -> None:
    with using("memory", tmp_path):
        assert store.of(store.ARCHIVE) is store.of(store.ARTIFACTS)
    own: dict[str, Any] = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    with using("memory", tmp_path, archive=own):
        digest, _ = store.keep(b"a record", alias=store.ARCHIVE)

        assert list(store.digests(store.ARCHIVE)) == [digest]
        assert list(store.digests()) == []


def test_objects_lie_under_the_prefix_and_come_as_a_stream(tmp_path: Path) -> None:
    with using("objects", tmp_path):
        digest, _ = store.keep(b"x" * BIG)
        listed = client().list_objects_v2(Bucket="obversa-test", Prefix=prefix_of())

        assert [one["Key"] for one in listed["Contents"]] == [
            f"{prefix_of()}/{store.name_of(digest)}"
        ]
        with store.open_bytes(digest) as stream:
            assert stream.read(4) == b"xxxx"


def leftovers() -> list[str]:
    folder = drafts.folder_of(store.of())
    if folder is None:
        return []
    return [path.name for path in folder.rglob("*") if path.is_file()]
