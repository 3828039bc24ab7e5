"""A run leaves as a file and comes back as the same record."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from gates.models import Request, Response
from runs import record, services
from runs.archive import exports, imports, portable
from runs.archive.portable import RecordRefused
from runs.archive.rebuild import rebuild
from runs.kernel.events import Event
from runs.kernel.frozen import frozen_object
from runs.kernel.state import fold
from runs.models import Artifact, Run, Step
from tests import factories, flows
from tests.gates.test_rebuild import busy_stream
from tests.runs import scenarios
from tests.runs.scenarios import SCENARIOS
from tests.runs.test_conformance import in_service

Lines = list[dict[str, Any]]
STEP = ("path", "status", "attempt", "summary", "outcome", "started_at", "ended_at")
GATE = ("request_id", "status", "holder", "claim_seq", "decision_text", "answered_by", "priority")


def exported(run: Run) -> Lines:
    return [json.loads(line) for line in exports.export_run(flows.fresh(run))]


def renamed(lines: Lines) -> Lines:
    """The same file of a run whose id nobody has here."""
    header = {**lines[0], "run": {**lines[0]["run"], "id": str(uuid.uuid4())}}
    return [header, *lines[1:]]


def rows_of(run: Run) -> list[Any]:
    return [
        list(Step.objects.filter(run=run).order_by("position").values_list(*STEP)),
        list(Request.objects.filter(run=run).order_by("request_id").values_list(*GATE)),
        list(
            Response.objects.filter(request__run=run)
            .order_by("request__request_id", "actor")
            .values_list("request__request_id", "actor", "response", "at")
        ),
        list(Artifact.objects.filter(run=run).order_by("seq").values_list("seq", "name", "digest")),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("name", SCENARIOS)
def test_an_imported_run_is_the_exported_run(name: str) -> None:
    run = in_service(SCENARIOS[name])
    lines = exported(run)

    copy = imports.import_run(lines)

    assert copy.pk != run.pk
    assert flows.events(copy) == flows.events(run)
    assert fold(flows.events(copy)) == fold(flows.events(run))
    assert exported(copy)[0]["digest"] == lines[0]["digest"]
    assert exported(copy)[1:] == lines[1:]
    assert rows_of(copy) == rows_of(run)
    same = ("status", "outcome", "params", "done_count", "total_count", "last_seq", "started_by")
    assert [getattr(copy, one) for one in same] == [getattr(run, one) for one in same]
    assert (copy.created_at, copy.ended_at) == (run.created_at, run.ended_at)
    assert rebuild(copy.pk) == 0


@pytest.mark.django_db
def test_a_run_keeps_its_id_where_nobody_has_it() -> None:
    lines = renamed(exported(in_service(SCENARIOS["check"])))

    assert str(imports.import_run(lines).pk) == lines[0]["run"]["id"]


@pytest.mark.django_db
def test_an_imported_run_that_waits_goes_on_with_its_answer() -> None:
    run = flows.start(scenarios.asks())
    flows.work(run)
    copy = imports.import_run(exported(run))
    assert (copy.status, copy.waiting_on) == ("waiting", ["gate"])

    assert flows.answer(copy, scenarios.YES).ok
    ended = flows.work(copy)

    assert ended is not None
    assert ended.status == "passed"
    assert flows.fresh(run).status == "waiting"
    assert rebuild(copy.pk) == 0


@pytest.mark.django_db
def test_a_stream_of_questions_comes_back_where_it_is_not_there() -> None:
    run = busy_stream()
    lines = exported(run)
    with pytest.raises(RecordRefused, match="stream 'busy' is here already"):
        imports.import_run(lines)
    lines[0]["run"] = {**lines[0]["run"], "stream": "busy-copy"}

    copy = imports.import_run(lines)

    assert flows.events(copy) == flows.events(run)
    assert rows_of(copy) == rows_of(run)


@pytest.mark.django_db
def test_a_run_at_work_is_not_brought_in_a_second_time() -> None:
    run = flows.start(scenarios.checks())

    with pytest.raises(RecordRefused, match="at work"):
        imports.import_run(exported(run))
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_cancelled_run_can_be_brought_in_and_resumed() -> None:
    run = flows.start(scenarios.asks())
    flows.work(run)
    services.cancel_run(run.pk, actor="user:1", reason="enough")

    copy = imports.import_run(exported(run))
    assert copy.status == "cancelled"
    services.resume_run(copy.pk, actor="user:1")

    assert flows.fresh(copy).status == "waiting"


def _put(where: dict[str, Any], **values: Any) -> None:
    where.update(values)


def _swap(lines: Lines) -> None:
    lines[2], lines[3] = lines[3], lines[2]


# How a file is spoilt, and what is said about it.
SPOILT: dict[str, tuple[Callable[[Lines], Any], str]] = {
    "no header": (lambda lines: lines.pop(0), "does not begin with the header"),
    "empty": (lambda lines: lines.clear(), "does not begin with the header"),
    "torn": (lambda lines: lines.pop(), r"torn: \d+ of \d+ events"),
    "changed": (lambda lines: _put(lines[-1], usage={}), "do not have the digest"),
    "swapped": (_swap, "missing or doubled"),
    "doubled": (lambda lines: _put(lines[3], **lines[2]), "missing or doubled"),
    "another format": (lambda lines: _put(lines[0], format=2), "format 2"),
    "another shape": (
        lambda lines: _put(lines[0]["run"]["definition"]["shape"], name="other"),
        "not the one its record names",
    ),
    "no shape": (lambda lines: _put(lines[0]["run"], definition=None), "no shape of a workflow"),
    "no event": (lambda lines: _put(lines[2], path="build"), "Event 2 is none"),
    "long actor": (lambda lines: _put(lines[2], actor="x" * 201), "at most 200"),
    "no kind of run": (lambda lines: _put(lines[0]["run"], kind="other"), "'other' is none"),
    "no id": (lambda lines: _put(lines[0]["run"], id="../../etc"), "no record of a run"),
    "audience of nobody": (
        lambda lines: _put(lines[0]["run"], audience={"users": []}),
        "names nobody",
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_is_not_whole_is_refused_and_leaves_nothing(how: str) -> None:
    lines = exported(in_service(SCENARIOS["check"]))
    spoil, told = SPOILT[how]
    spoil(lines)

    with pytest.raises(RecordRefused, match=told):
        imports.import_run(lines)
    assert Run.objects.count() == 1


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in a value that something else can be put in the place of."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += _places(inner)
    return found


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(2**60),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([[]]),
    st.just({"status": "pass"}),
)


@pytest.fixture
def whole(db: None) -> str:
    """A file of a run with a send-back and two answers."""
    return json.dumps(exported(in_service(SCENARIOS["refused, then approved"])))


@hypothesis.settings(max_examples=60, suppress_health_check=list(hypothesis.HealthCheck))
@given(data=st.data())
def test_whatever_a_file_holds_it_is_one_run_or_refused(whole: str, data: Any) -> None:
    lines = json.loads(whole)
    where, key = data.draw(st.sampled_from(_places(data.draw(st.sampled_from(lines)))))
    where[key] = data.draw(ODD)
    # As somebody would who means to get it in.
    with contextlib.suppress(ValueError, TypeError):
        events = [portable.from_line(line) for line in lines[1:]]
        lines[0]["digest"] = portable.digest_of(portable.lines_of(events))
    count = Run.objects.count()

    try:
        copy = imports.import_run(lines)
    except RecordRefused:
        assert Run.objects.count() == count
    else:
        assert exported(copy)[0]["digest"] == lines[0]["digest"]
        assert rebuild(copy.pk) == 0


@pytest.mark.django_db
def test_a_record_whose_people_are_others_here_is_refused_unless_asked_for() -> None:
    ada = factories.user("ada")
    run = factories.make_run(started_by=f"user:{ada.pk}")
    lines = exported(run)
    assert lines[0]["people"] == {f"user:{ada.pk}": "ada"}
    ada.username = "eve"
    ada.save(update_fields=["username"])

    with pytest.raises(RecordRefused, match=f"user:{ada.pk} is ada in the record and eve here"):
        imports.import_run(lines)
    assert imports.import_run(lines, other_people=True).started_by == f"user:{ada.pk}"


@pytest.mark.django_db
def test_a_field_with_a_name_of_the_line_itself_comes_back() -> None:
    run = in_service(SCENARIOS["check"])
    odd = {"seq": 7, "kind": "x", "path": "p", "fields": [1], "session": "s", "actor": None}
    with record.turn(run.pk) as turn:
        turn.append("acme:odd", ("a",), odd, key="odd")

    copy = imports.import_run(exported(run))

    last = flows.events(copy)[-1]
    assert (dict(last.fields), last.key) == (odd, "odd")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["seq", "kind", "ts", "path", "session", "key", "fields", "runId"])


@given(
    kind=st.sampled_from(["run:start", "log", "acme:odd"]),
    path=st.lists(st.text(), max_size=3),
    fields=st.dictionaries(NAMES | st.text(), JSON, max_size=4),
    surface=st.sampled_from(["", "browser"]),
)
def test_any_event_survives_its_line(
    kind: str, path: list[str], fields: dict[str, Any], surface: str
) -> None:
    fields = {**fields, "session": 3} if kind == "run:start" else fields
    event = Event(
        kind, tuple(path), frozen_object("fields", fields), seq=4, ts=5, surface=surface, key="k"
    )

    [line] = portable.lines_of([event])
    read = json.loads(json.dumps(line))

    assert portable.from_line(read) == event
    assert read["session"] == (3 if kind == "run:start" else 1)


@pytest.mark.django_db
def test_the_commands_write_a_file_and_read_it_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = in_service(SCENARIOS["approved"])
    file = tmp_path / "run.jsonl"

    call_command("export_run", str(run.pk)[:13], str(file))
    with pytest.raises(CommandError, match="there already"):
        call_command("export_run", str(run.pk), str(file))
    call_command("import_run", str(file))

    copy = Run.objects.get(pk=capsys.readouterr().out.strip())
    assert flows.events(copy) == flows.events(run)
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


@pytest.mark.django_db
def test_the_commands_say_what_is_wrong(tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    run = in_service(SCENARIOS["check"])
    text = "\n".join(exports.export_run(flows.fresh(run)))
    torn.write_text(text[:-5])

    with pytest.raises(CommandError, match="torn: 1 line could not be read"):
        call_command("import_run", str(torn))
    with pytest.raises(CommandError, match="not imported"):
        call_command("import_run", str(tmp_path / "gone.jsonl"))
    with pytest.raises(CommandError, match="no run"):
        call_command("export_run", "dcba0000")
    assert Run.objects.count() == 1
