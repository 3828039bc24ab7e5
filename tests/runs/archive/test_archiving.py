from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from django.utils import timezone

from gates.models import ArchivedRequest, Notice, Request, RouterCall
from obversa_site.backups.checking import check_records
from runs import record, record_command
from runs.archive import archiving, kept, retention
from runs.archive.archiving import MustStay, archive_run, restore_run
from runs.artifacts import store, tidying
from runs.errors import RunArchived
from runs.models import Artifact, Attempt, Event, Run, Step
from runs.report.verifying import verify_receipt
from runs.turns import folding, whole
from runs.turns.whole import RecordMoved
from tests import factories
from tests.gates.calls import code, person
from tests.runs.archive.runs_over import everything, over
from tests.stores import spoil, using

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored(tmp_path: Path) -> Iterator[None]:
    folding.forget()
    retention._after.clear()
    with using("memory", tmp_path):
        yield


def test_a_run_leaves_and_its_row_and_files_stay() -> None:
    run = over()

    gone = archive_run(run.pk)

    assert gone.archived_at is not None
    assert (gone.status, gone.title, gone.head) == (run.status, run.title, run.head)
    assert (gone.outcome, gone.params) == (None, {})
    for model in (Event, Step, Attempt, Request, RouterCall):
        assert not model._default_manager.filter(run=run).exists()
    (file,) = Artifact.objects.filter(run=run)
    assert b"".join(store.checked(file.digest, file.size)) == b"what it was about"
    lines = kept.lines_of(gone)
    assert (lines[0]["events"], len(lines) - 1) == (run.last_seq, run.last_seq)


def test_a_run_comes_back_as_it_was_row_by_row() -> None:
    run = over()
    before = everything(run)

    archive_run(run.pk)
    folding.forget()
    restore_run(run.pk)

    assert everything(run) == before
    assert not ArchivedRequest.objects.exists()
    call_command("show_record", str(run.pk), verify=True, stdout=StringIO())
    again = archive_run(run.pk)
    assert again.archive_digest == kept_digest(run)


def kept_digest(run: Run) -> str:
    return str(Run.objects.values_list("archive_digest", flat=True).get(pk=run.pk))


def test_nobody_else_takes_an_event_away() -> None:
    run = over()
    Run.objects.filter(pk=run.pk).update(
        archived_at=timezone.now(), archive_digest="sha256:" + "0" * 64, archive_size=1
    )

    for model in (Event.objects, Event.objects.filter(run=run)):
        with pytest.raises(TypeError, match="append only"):
            model.delete() if hasattr(model, "delete") else model.all().delete()
    for sql in ("DELETE FROM runs_event", "UPDATE runs_event SET kind = 'x'"):
        with (
            pytest.raises(DatabaseError, match="append only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)

    assert Event.objects.filter(run=run).count() == run.last_seq


@pytest.mark.postgres
def test_events_of_a_run_that_is_not_archived_are_kept_whoever_asks() -> None:
    run = over()

    with pytest.raises(DatabaseError, match="append only"), transaction.atomic():
        whole.prune(run.pk)

    assert Event.objects.filter(run=run).count() == run.last_seq


POINTS = ("keep", "read back", "receipts", "left", "rows gone", "events gone")


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_nothing_is_lost_and_it_begins_again(
    point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = over()
    before = everything(run)

    with monkeypatch.context() as patch:
        die_at(point, patch)
        with pytest.raises(Killed):
            archive_run(run.pk)

    assert everything(run) == before
    assert not ArchivedRequest.objects.exists()
    archive_run(run.pk)
    folding.forget()
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "rebuild", killed)
        with pytest.raises(Killed):
            restore_run(run.pk)
    assert not Event.objects.filter(run=run).exists()
    restore_run(run.pk)
    assert everything(run) == before


class Killed(BaseException):
    pass


def killed(*args: Any, **options: Any) -> Any:
    raise Killed


def after(target: Any) -> Any:
    def acted(*args: Any, **options: Any) -> Any:
        target(*args, **options)
        raise Killed

    return acted


def die_at(point: str, patch: pytest.MonkeyPatch) -> None:
    match point:
        case "keep":
            patch.setattr(store, "keep", after(store.keep))
        case "read back":
            patch.setattr(archiving, "_read_back", after(archiving._read_back))
        case "receipts":
            patch.setattr(record, "alone", killed)
        case "left":
            patch.setattr(whole, "leave", after(whole.leave))
        case "rows gone":
            patch.setattr(whole, "prune", killed)
        case "events gone":
            patch.setattr(whole, "prune", after(whole.prune))


def test_what_was_changed_in_the_archive_is_not_brought_back() -> None:
    run = archive_run(over().pk)
    text = b"".join(store.checked(run.archive_digest, alias=store.ARCHIVE))
    spoil(run.archive_digest, text.replace(b"false", b"true "), store.ARCHIVE)

    with pytest.raises(CommandError, match="changed in the store"):
        call_command("restore_run", str(run.pk))
    with pytest.raises(CommandError, match="archive cannot be read"):
        call_command("show_record", str(run.pk), verify=True)
    with pytest.raises(CommandError, match="faults=1"):
        call_command("check_artifacts", stdout=StringIO())

    assert Run.objects.get(pk=run.pk).archived_at is not None


def test_a_file_that_reads_back_otherwise_keeps_the_run_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = over()
    monkeypatch.setattr(archiving, "fold", lambda events: None)

    with pytest.raises(MustStay, match="folds to another state"):
        archive_run(run.pk)

    assert Event.objects.filter(run=run).count() == run.last_seq


def test_a_record_that_does_not_verify_stays() -> None:
    run = over()
    with override_settings(SECRET_KEY="another key than that of then, of course"):
        with pytest.raises(MustStay, match="does not verify"):
            archive_run(run.pk)
        archive_run(run.pk, other_key=True)


def test_runs_that_must_stay_say_why() -> None:
    waiting = factories.pending_gate().run
    busy, open_message, repeated = over(), over(), over()
    Attempt.objects.create(
        run=busy,
        path=["release", "ship"],
        number=9,
        ready_at=timezone.now(),
        sent_at=timezone.now(),
    )
    live = factories.make_run()
    Run.objects.filter(pk=live.pk).update(rerun_of=repeated)
    Notice.objects.create(run=open_message, seq=1, kind="x")

    for run, why in (
        (waiting, "it has not ended"),
        (busy, "still at work"),
        (repeated, "runs it again"),
        (open_message, "not sent yet"),
    ):
        with pytest.raises(MustStay, match=why):
            archive_run(run.pk)
        assert Event.objects.filter(run=run).exists()


def test_of_two_that_archive_the_same_run_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    run = over()
    asked = archiving._read_back

    def meanwhile(*args: Any) -> None:
        asked(*args)
        monkeypatch.setattr(archiving, "_read_back", asked)
        archive_run(run.pk)

    monkeypatch.setattr(archiving, "_read_back", meanwhile)
    with pytest.raises(RecordMoved):
        archive_run(run.pk)

    assert Run.objects.get(pk=run.pk).archived_at is not None
    with pytest.raises(MustStay, match="in the archive already"):
        archive_run(run.pk)


def test_nothing_moves_a_run_that_is_in_the_archive() -> None:
    run = archive_run(over().pk)

    with pytest.raises(RunArchived, match=f"restore_run {run.pk}"), record.turn(run.pk):
        pass


def test_an_installation_with_archived_runs_is_checked_and_rebuilt() -> None:
    gone, here = archive_run(over().pk), over()

    found = check_records()

    assert (found.is_whole, found.runs, found.receipts) == (True, 2, 2)
    assert found.events == gone.last_seq + here.last_seq
    out = StringIO()
    call_command("rebuild", stdout=out)
    assert "repaired=0" in out.getvalue()


def test_the_receipt_stays_and_is_the_one_of_the_record(tmp_path: Path) -> None:
    run = over()
    row = Request.objects.get(run=run)
    api = person(factories.ada())
    given = api.get(f"/requests/{row.pk}/receipt").json()

    run = archive_run(run.pk)

    after_it = api.get(f"/requests/{row.pk}/receipt").json()
    assert after_it["answers"] == given["answers"]
    assert verify_receipt(after_it)
    assert code(api.get(f"/requests/{row.pk}")) == (410, "archived")
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(after_it))

    assert record_command._receipt({"--verify-receipt": str(path), "--record": str(run.pk)}) == 0


def test_sensitive_values_stay_masked_in_a_kept_receipt() -> None:
    secret = {"presentation": {"sensitive": ["/revision"]}}
    run = over(**secret)
    row = Request.objects.get(run=run)
    archive_run(run.pk)

    told = person(factories.ada()).get(f"/requests/{row.pk}/receipt").json()

    assert "abc123" not in str(told["question"]["input"])
    assert told["question"]["masked"] == ["/revision"]


def test_the_command_says_what_it_would_do_and_does_it() -> None:
    run, waiting = over(), factories.pending_gate().run
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now() - timedelta(days=91))

    def told(*options: str) -> str:
        out = StringIO()
        call_command("archive_runs", "--older-than", "90d", *options, stdout=out)
        return out.getvalue()

    assert f"{run.pk} would be archived" in told("--dry-run")
    assert "archived=0" in told("--workflow", "another")
    assert not Run.objects.filter(archived_at__isnull=False).exists()
    assert "archived=1 stayed=0 failed=0" in told()
    assert Run.objects.get(pk=waiting.pk).archived_at is None
    out = StringIO()
    call_command("restore_run", str(run.pk)[:8], stdout=out)
    assert f"events={run.last_seq}" in out.getvalue()
    with pytest.raises(CommandError, match="not in the archive"):
        call_command("restore_run", str(run.pk))


def test_the_sweep_archives_only_where_a_setting_says_so() -> None:
    run, stays = over(), over()
    Run.objects.all().update(ended_at=timezone.now() - timedelta(days=8))
    Notice.objects.create(run=stays, seq=1, kind="x")

    assert retention.archive_due() == 0
    with override_settings(OBVERSA_ARCHIVE_AFTER_DAYS=7):
        assert sum(retention.archive_due() for _ in range(3)) == 1

    assert ids(archived=True) == {run.pk}


def ids(*, archived: bool) -> set[UUID]:
    rows = Run.objects.filter(archived_at__isnull=not archived)
    return set(rows.values_list("pk", flat=True))


def test_an_archived_record_and_kept_files_are_not_cleaned_away() -> None:
    run = over()
    archive_run(run.pk)

    assert tidying.tidy(older_than_seconds=-60) == 0
    restore_run(run.pk)
    assert tidying.tidy(older_than_seconds=-60) == 1

    (file,) = Artifact.objects.filter(run=run)
    store.need_whole(file.digest, file.size)


def test_cleaning_is_done_once_an_hour_by_one() -> None:
    store.keep(b"nobody's")
    done: list[int] = []

    def clear() -> int:
        done.append(1)
        return 0

    retention.also(clear)
    try:
        retention.tidy_up()
        retention.tidy_up()
    finally:
        retention._more.pop()

    assert done == [1]
