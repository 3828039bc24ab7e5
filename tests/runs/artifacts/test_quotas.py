from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from runs import dag, fn_job
from runs.artifacts import quotas, store
from runs.artifacts.quotas import QuotaSpent
from runs.artifacts.store import ArtifactTooLarge
from runs.models import Run
from tests import factories, flows
from tests.runs.artifacts.rows import named
from tests.stores import using

pytestmark = pytest.mark.django_db(transaction=True)


def keep(run: Run, content: bytes, step: str = "build") -> str:
    return quotas.keep(run.pk, ("release", step), "big.bin", content)[0]


@override_settings(OBVERSA_MAX_FILE_BYTES=10)
def test_a_file_over_the_limit_is_refused_in_words(kind: str) -> None:
    run = factories.make_run()

    with pytest.raises(ArtifactTooLarge, match=r"big\.bin is not kept: one file may have 10 bytes"):
        keep(run, b"x" * 11)

    assert list(store.digests()) == []
    assert keep(run, b"x" * 10)


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("OBVERSA_MAX_FILE_BYTES_PER_STEP", "the files of one step"),
        ("OBVERSA_MAX_FILE_BYTES_PER_RUN", "the files of one run"),
        ("OBVERSA_MAX_FILE_BYTES_IN_ALL", "the files of all runs"),
    ],
)
def test_what_is_kept_already_counts_and_equal_bytes_count_once(
    tmp_path: Path, setting: str, what: str
) -> None:
    with using("memory", tmp_path), override_settings(**{setting: 10}):
        run = factories.make_run()
        named(run, b"sixsix")
        named(run, b"sixsix", name="the same.txt")

        with pytest.raises(QuotaSpent, match=f"{what} may have 10 bytes"):
            keep(run, b"fives")

        assert len(list(store.digests())) == 1
        keep(run, b"sixsix")
        keep(run, b"four")


def test_steps_and_runs_have_room_of_their_own(tmp_path: Path) -> None:
    limits = {"OBVERSA_MAX_FILE_BYTES_PER_STEP": 6, "OBVERSA_MAX_FILE_BYTES_PER_RUN": 10}
    with using("memory", tmp_path), override_settings(**limits):
        run, other = factories.make_run(), factories.make_run()
        named(run, b"sixsix")

        with pytest.raises(QuotaSpent, match="of one step"):
            keep(run, b"1")
        keep(run, b"four", step="test")
        keep(other, b"fresh")


@override_settings(OBVERSA_MAX_FILE_BYTES_PER_RUN=8)
def test_a_step_that_keeps_too_much_fails_with_the_reason() -> None:
    def attach(ctx: Any) -> None:
        ctx.attach("first.bin", b"12345", "application/octet-stream")
        ctx.attach("second.bin", b"67890", "application/octet-stream")

    run = flows.ran(fn_job("attach", attach), name="files")

    assert run.status == Run.Status.FAILED
    assert [row.name for row in run.artifacts.all()] == ["first.bin"]
    told = str(run.steps.values_list("summary", flat=True)[0]) + str(run.outcome)
    assert "second.bin is not kept: the files of one run may have 8 bytes" in told


@override_settings(OBVERSA_MAX_FILE_BYTES_PER_RUN=8)
def test_of_two_files_that_race_for_the_last_room_one_gets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another step's file lands between the look before writing and the event."""
    asked = quotas.keep

    def meanwhile(run_id: Any, path: Any, name: str, content: Any) -> tuple[str, int]:
        kept = asked(run_id, path, name, content)
        named(Run.objects.get(pk=run_id), b"54321")
        return kept

    monkeypatch.setattr(quotas, "keep", meanwhile)

    def attach(ctx: Any) -> None:
        ctx.attach("late.bin", b"12345", "application/octet-stream")

    run = flows.ran(dag("flow", {"late": fn_job("attach", attach)}), name="files")

    assert run.status == Run.Status.FAILED
    assert [row.name for row in run.artifacts.all()] == ["a.txt"]
