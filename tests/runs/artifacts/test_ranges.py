from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

from runs.artifacts import ranges, store
from tests import factories
from tests.gates.calls import Api, code
from tests.pages import client_of
from tests.runs.artifacts.rows import named
from tests.stores import spoil

pytestmark = pytest.mark.django_db
BYTES = bytes(range(250)) * 10


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "CHUNK", 1_000)


def asked(digest: str, run: Any, **headers: str) -> Any:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return client_of(factories.ben()).get(f"/runs/{run.pk}/artifacts/{digest}/", headers=told)


@pytest.mark.parametrize(
    ("wanted", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=999-1000", 999, 1001),
        ("bytes=400-2199", 400, 2200),
        ("bytes=1000-", 1000, 2500),
        ("bytes=2499-9999999", 2499, 2500),
        ("bytes=-300", 2200, 2500),
        ("bytes=-9999", 0, 2500),
        ("Bytes = 5-6", 5, 7),
    ],
)
def test_a_part_is_what_was_asked_for(kind: str, wanted: str, first: int, end: int) -> None:
    run = factories.make_run()
    digest = named(run, BYTES)

    answer = asked(digest, run, range=wanted)

    assert answer.status_code == HTTPStatus.PARTIAL_CONTENT
    assert b"".join(answer.streaming_content) == BYTES[first:end]
    told = {name: answer[name] for name in ("Content-Length", "Content-Range", "ETag")}
    assert told == {
        "Content-Length": str(end - first),
        "Content-Range": f"bytes {first}-{end - 1}/2500",
        "ETag": f'"{digest}"',
    }


def test_a_download_goes_on_where_it_broke_off(kind: str) -> None:
    run = factories.make_run()
    digest = named(run, BYTES)
    whole = asked(digest, run)
    got = b"".join(whole.streaming_content)[:1_234]

    rest = asked(digest, run, range=f"bytes={len(got)}-", if_range=whole["ETag"])

    assert (rest.status_code, got + b"".join(rest.streaming_content)) == (206, BYTES)


@pytest.mark.parametrize(
    "headers",
    [
        {"range": "bytes=0-4,9-12"},
        {"range": "bytes=9-4"},
        {"range": "bytes=-"},
        {"range": "bytes=" + "9" * 5_000 + "-"},
        {"range": "lines=1-2"},
        {"range": "bytes=0-4", "if_range": f'"sha256:{"0" * 64}"'},
        {"range": "bytes=0-4", "if_range": "Wed, 21 Oct 2026 07:28:00 GMT"},
    ],
)
def test_what_is_no_part_of_these_bytes_is_answered_with_the_whole(headers: dict[str, str]) -> None:
    run = factories.make_run()
    digest = named(run, BYTES)

    answer = asked(digest, run, **headers)

    assert (answer.status_code, answer.has_header("Content-Range")) == (200, False)
    assert b"".join(answer.streaming_content) == BYTES


@pytest.mark.parametrize(("content", "wanted"), [(BYTES, "bytes=2500-"), (b"", "bytes=0-")])
def test_a_part_behind_the_end_is_refused_with_the_size(
    ben: Api, content: bytes, wanted: str
) -> None:
    run = factories.make_run()
    digest = named(run, content)

    answer = asked(digest, run, range=wanted)

    assert code(answer) == (416, "range-beyond")
    assert answer["Content-Range"] == f"bytes */{len(content)}"


@pytest.mark.parametrize("known", ['"{}"', 'W/"{}"', '"other", "{}"', "*"])
def test_whoever_has_the_bytes_gets_no_part_of_them(known: str) -> None:
    run = factories.make_run()
    digest = named(run, BYTES)

    answer = asked(digest, run, range="bytes=0-4", if_none_match=known.format(digest))

    assert (answer.status_code, answer.content) == (304, b"")


def test_no_part_of_changed_bytes_arrives_whole(kind: str) -> None:
    run = factories.make_run()
    digest = named(run, BYTES)
    spoil(digest, BYTES[:-1] + b"!")

    # The byte that was changed lies behind what is asked for.
    assert asked(digest, run, range="bytes=0-4").status_code == HTTPStatus.CONFLICT
    answer = asked(digest, run, range="bytes=0-2200")

    assert answer.status_code == HTTPStatus.PARTIAL_CONTENT
    assert len(b"".join(answer.streaming_content)) < int(answer["Content-Length"])


def test_pieces_of_any_size_make_the_same_part() -> None:
    for size in (1, 7, 10, 11):
        for first in range(10):
            for end in range(first + 1, 11):
                pieces = (BYTES[at : min(at + size, 10)] for at in range(0, 10, size))
                assert b"".join(ranges.part(pieces, range(first, end))) == BYTES[first:end]
