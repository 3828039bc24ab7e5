"""Somebody with every right on the database alters a record: it is named at the right event."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gates import services
from runs import record, record_command
from runs.archive import exports, imports, portable
from runs.archive.portable import RecordRefused
from runs.archive.verifying import verify_run
from runs.kernel import chain
from runs.models import Event, Run
from runs.turns import seals
from tests import factories, flows

pytestmark = pytest.mark.django_db
OFF = {
    "postgresql": ["SET LOCAL session_replication_role = replica"],
    "sqlite": ["DROP TRIGGER runs_event_is_append_only", "DROP TRIGGER runs_event_is_kept"],
}


def answered() -> Run:
    gate = factories.pending_gate()
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": False, "note": "not yet"},
    )
    return flows.fresh(gate.run)


def sql(text: str, *values: Any) -> None:
    """As the owner of the database, who can do away with its triggers."""
    with connection.cursor() as cursor:
        cursor.execute(text, values)


@pytest.fixture
def unguarded(db: None) -> None:
    for statement in OFF[connection.vendor]:
        sql(statement)


def test_a_record_that_nobody_touched_is_whole_and_sealed() -> None:
    run = answered()

    found = verify_run(run)

    assert (found.ok, found.count, found.head) == (True, run.last_seq, run.head)
    assert "seal" in found.text


EDITS: dict[str, tuple[str, Any]] = {
    "kind": ("kind", "log"),
    "path": ("path", '["elsewhere"]'),
    "actor": ("actor", "user:99"),
    "surface": ("surface", "api"),
    "time": ("at", "2020-01-01 00:00:00+00:00"),
    "key": ("key", "another"),
    "payload": ("payload", '{"note": "forged"}'),
    "hash": ("hash", "0" * 64),
    "no hash": ("hash", None),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("at", [1, 5, -1])
@pytest.mark.usefixtures("unguarded")
def test_an_edited_column_is_named_at_its_event(edit: str, at: int) -> None:
    run = answered()
    seq = at if at > 0 else run.last_seq
    column, value = EDITS[edit]
    sql(f"UPDATE runs_event SET {column} = %s WHERE run_id = %s AND seq = %s", value, key(run), seq)

    found = verify_run(run)

    # Without its hash the first event would be one of before there were any.
    wanted = 1 if (edit, seq) == ("no hash", 1) else seq
    if (edit, seq) == ("no hash", 1):
        assert found.ok  # its content is covered by the hash of the second
    else:
        assert (found.ok, found.seq) == (False, wanted)


@pytest.mark.usefixtures("unguarded")
def test_what_was_deleted_put_in_or_moved_is_named() -> None:
    run = answered()
    middle, last = 4, run.last_seq

    def deleted() -> int:
        sql("DELETE FROM runs_event WHERE run_id = %s AND seq = %s", key(run), middle)
        return middle

    def deleted_and_renumbered() -> int:
        sql("DELETE FROM runs_event WHERE run_id = %s AND seq = %s", key(run), middle)
        for seq in range(middle + 1, last + 1):
            sql(
                "UPDATE runs_event SET seq = %s WHERE run_id = %s AND seq = %s",
                seq - 1,
                key(run),
                seq,
            )
        sql("UPDATE runs_run SET last_seq = %s WHERE id = %s", last - 1, key(run))
        return middle

    def cut() -> int:
        sql("DELETE FROM runs_event WHERE run_id = %s AND seq = %s", key(run), last)
        return last

    def put_after() -> int:
        _copied(run, last, last + 1)
        return last + 1

    def swapped() -> int:
        for old, new in ((3, 999), (4, 3), (999, 4)):
            sql("UPDATE runs_event SET seq = %s WHERE run_id = %s AND seq = %s", new, key(run), old)
        return 3

    for alter in (deleted, deleted_and_renumbered, cut, put_after, swapped):
        assert _named(run, alter)


def _named(run: Run, alter: Callable[[], int]) -> bool:
    place = transaction.savepoint()
    wanted = alter()
    found = verify_run(run)
    transaction.savepoint_rollback(place)
    assert (found.ok, found.seq) == (False, wanted), alter.__name__
    return True


def _copied(run: Run, seq: int, to: int) -> None:
    row = Event.objects.get(run=run, seq=seq)
    row.pk, row.seq, row.key = None, to, ""
    row._state.adding = True
    row.save(force_insert=True)


@pytest.mark.usefixtures("unguarded")
def test_whoever_makes_the_whole_chain_anew_has_no_seal_for_it() -> None:
    run = answered()
    sql("UPDATE runs_event SET actor = 'user:99' WHERE run_id = %s AND seq = 5", key(run))
    heads = list(chain.hashes(flows.events(run)))
    for seq, head in enumerate(heads, 1):
        sql("UPDATE runs_event SET hash = %s WHERE run_id = %s AND seq = %s", head, key(run), seq)

    assert "not the one that was sealed" in verify_run(run).text

    sql("UPDATE runs_run SET head = %s WHERE id = %s", heads[-1], key(run))
    found = verify_run(run)
    assert not found.ok
    assert "not one of this installation" in found.text


@pytest.mark.usefixtures("unguarded")
def test_the_next_turn_does_not_heal_an_altered_record() -> None:
    gate = factories.pending_gate()
    sql("UPDATE runs_event SET actor = 'user:99' WHERE run_id = %s AND seq = 2", key(gate.run))

    services.claim(gate.pk, principal=factories.ada())

    assert verify_run(gate.run).seq == 2


@pytest.mark.usefixtures("unguarded")
def test_a_record_of_before_there_were_hashes_goes_on_as_a_chain() -> None:
    gate = factories.pending_gate()
    sql("UPDATE runs_event SET hash = NULL WHERE run_id = %s", key(gate.run))
    sql("UPDATE runs_run SET head = '', seal = '' WHERE id = %s", key(gate.run))
    assert "nothing to compare" in verify_run(gate.run).text

    services.claim(gate.pk, principal=factories.ada())

    assert verify_run(gate.run).ok
    assert flows.fresh(gate.run).head == list(chain.hashes(flows.events(gate.run)))[-1]
    sql("UPDATE runs_event SET actor = 'user:99' WHERE run_id = %s AND seq = 2", key(gate.run))
    found = verify_run(gate.run)
    assert (found.ok, found.seq) == (False, 1)
    assert "One of the events 1 to" in found.text


def test_an_import_has_the_head_of_the_export() -> None:
    run = answered()
    lines = [json.loads(line) for line in exports.export_run(run)]

    copy = flows.fresh(imports.import_run(lines))

    assert copy.pk != run.pk
    assert lines[0]["head"] == run.head == copy.head
    assert copy.seal != run.seal
    assert verify_run(copy).ok


def test_an_import_whose_digest_was_made_anew_but_not_its_hashes_is_refused() -> None:
    run = answered()
    lines = [json.loads(line) for line in exports.export_run(run)]
    lines[3]["actor"] = "user:99"
    events = [portable.from_line(line) for line in lines[1:]]
    lines[0]["digest"] = portable.digest_of(portable.lines_of(events))

    with pytest.raises(RecordRefused, match="Event 3 was altered"):
        imports.import_run(lines)


def test_the_commands_verify_a_run_and_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = answered()
    file = tmp_path / "run.jsonl"
    file.write_text("".join(f"{line}\n" for line in exports.export_run(run)))
    out = StringIO()

    call_command("show_record", str(run.pk), "--verify", stdout=out)
    call_command("show_record", str(file), "--verify", stdout=out)
    assert record_command.main([str(file), "--verify"]) == 0

    assert out.getvalue().count(f"All {run.last_seq} events fit the chain") == 2
    assert f"All {run.last_seq} events" in capsys.readouterr().out


@pytest.mark.usefixtures("unguarded")
def test_the_command_ends_with_a_failure_that_names_the_event() -> None:
    run = answered()
    sql("UPDATE runs_event SET surface = 'api' WHERE run_id = %s AND seq = 3", key(run))

    with pytest.raises(CommandError, match="Event 3 was altered"):
        call_command("show_record", str(run.pk), "--verify")


LINES = st.sampled_from(["edit", "delete", "double", "swap", "tear"])


@pytest.fixture
def exported_file(tmp_path: Path) -> list[str]:
    return list(exports.export_run(answered()))


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_an_altered_file_is_named_at_the_altered_line(
    exported_file: list[str], tmp_path: Path, data: st.DataObject
) -> None:
    lines = list(exported_file)
    count = len(lines) - 1
    seq = data.draw(st.integers(1, count))
    act = data.draw(LINES)
    if act == "edit":
        event = json.loads(lines[seq])
        name = data.draw(st.sampled_from([*sorted(set(event) - {"session"}), "more"]))
        # What it is now and its number are drawn so that nothing else is meant by them.
        event[name] = {"seq": 7_000, "ts": 1, "path": ["x"]}.get(name, "forged by somebody")
        lines[seq] = json.dumps(event)
    elif act == "delete":
        del lines[seq]
    elif act == "double":
        lines.insert(seq, lines[seq])
        seq += 1
    elif act == "swap":
        other = seq % count + 1
        lines[seq], lines[other] = lines[other], lines[seq]
        seq = min(seq, other)
        if count == 1:
            return
    else:
        lines[seq] = lines[seq][: len(lines[seq]) // 2]
    file = tmp_path / "altered.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))

    found = record_command.verify(str(file))

    assert (found.ok, found.seq) == (False, seq)


def test_a_file_of_a_script_says_that_it_has_no_hashes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"kind": "run:start", "ts": 1, "path": []}\n')

    assert record_command.main([str(file), "--verify"]) == 1
    assert "only those have hashes" in capsys.readouterr().err


def test_a_seal_is_of_one_run_one_place_and_one_key(settings: Any) -> None:
    seal = seals.seal_of("a", 3, "h")

    assert seals.is_seal(seal, "a", 3, "h")
    assert not seals.is_seal(seal, "b", 3, "h")
    assert not seals.is_seal(seal, "a", 4, "h")
    settings.SECRET_KEY = "another"
    assert not seals.is_seal(seal, "a", 3, "h")


def test_a_turn_that_writes_nothing_leaves_head_and_seal() -> None:
    run = answered()

    with record.turn(run.pk):
        pass

    assert flows.fresh(run).seal == run.seal


def key(run: Run) -> str:
    return str(run.pk) if connection.vendor == "postgresql" else run.pk.hex
