from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runs.artifacts import drafts, store, tidying
from runs.models import Artifact
from tests import factories
from tests.runs.artifacts.rows import named
from tests.stores import client, prefix_of, spoil, using

pytestmark = pytest.mark.django_db


def test_bytes_that_no_row_names_go_after_a_day(kind: str) -> None:
    run = factories.make_run()
    digest = named(run, b"kept")
    store.keep(b"left behind by a step that lost its lease")

    assert tidying.tidy() == 0
    assert tidying.tidy(older_than_seconds=-60) == 1

    assert list(store.digests()) == [digest]
    assert tidying.tidy(older_than_seconds=-60) == 0


def test_half_a_file_goes_after_a_day(tmp_path: Path) -> None:
    with using("files", tmp_path):
        digest = named(factories.make_run(), b"kept")
        folder = drafts.folder_of(store.of())
        assert folder is not None
        old, young = folder / ".part-old", folder / ".part-young"
        for path in (old, young):
            path.write_bytes(b"half")
        os.utime(old, (0, 0))

        assert tidying.tidy() == 1

        assert (old.exists(), young.exists()) == (False, True)
        assert list(store.digests()) == [digest]


def test_an_upload_that_was_never_finished_is_given_up(tmp_path: Path) -> None:
    with using("objects", tmp_path):
        ours = f"{prefix_of()}/ab/{'0' * 62}"
        theirs = f"{prefix_of()}/theirs"
        for key in (ours, theirs):
            client().create_multipart_upload(Bucket="obversa-test", Key=key)

        # The server of tests dates every upload to the same day of long ago.
        assert tidying.tidy() == 1

        left = client().list_multipart_uploads(Bucket="obversa-test").get("Uploads", [])
        keys = {one["Key"] for one in left}
        assert theirs in keys
        assert ours not in keys


def test_every_file_is_read_and_what_is_wrong_is_named(kind: str) -> None:
    run = factories.make_run()
    whole, changed, gone = (named(run, content) for content in (b"whole", b"once", b"here"))
    Artifact.objects.create(**{**row_of(whole), "seq": 99, "name": "again.txt"})
    out = StringIO()
    call_command("check_artifacts", stdout=out)
    assert out.getvalue().strip() == "files=3 bytes=13 faults=0"

    spoil(changed, b"twas")
    store.of().delete(store.name_of(gone))
    out = StringIO()
    with pytest.raises(CommandError, match="files=3 bytes=13 faults=2"):
        call_command("check_artifacts", stdout=out)

    told = sorted(line.split(" ", 2)[:2] for line in out.getvalue().splitlines())
    assert told == [["changed", changed], ["missing", gone]]
    assert f"of run {run.pk}" in out.getvalue()


def row_of(digest: str) -> dict[str, object]:
    found = dict(Artifact.objects.filter(digest=digest).values().get())
    return {name: value for name, value in found.items() if name != "id"}
