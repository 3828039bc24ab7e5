"""`obversa-record` and `show_record`: the same page, from a file or from the database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from runs import record_command, render_record, summarize_record
from runs.archive import exports
from runs.models import Run
from tests import factories, flows
from tests.report.records import end, graph, node, record, start

ROOT = Path(__file__).resolve().parents[2]
EVENTS = record(
    start(runId="small-1"), graph("a"), node("a", "start"), node("a", "done", status="pass"), end()
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS))
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = record_command.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_file_is_shown_as_a_page(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, str(file)) == (0, render_record(EVENTS), "")


def test_with_json_it_is_the_summary(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("--json", str(file)), (str(file), "--json")):
        code, out, err = shown(capsys, *arguments)

        assert (code, err) == (0, "")
        assert json.loads(out) == summarize_record(EVENTS)


def test_lines_that_are_no_events_are_counted_beside_the_page(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text() + '\n\n42\n{"kind": "dag:no')

    code, out, err = shown(capsys, str(file))

    assert (code, out) == (0, render_record(EVENTS))
    assert err == "2 lines could not be read.\n"


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("--all", "a"), ("--json",), ("a", "-x")])
def test_no_name_or_an_unknown_flag_prints_the_usage(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, *arguments) == (1, "", f"{record_command.USAGE}\n")


def test_help_is_no_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--help") == (0, f"{record_command.USAGE}\n", "")


def test_a_registered_run_is_found_by_its_id(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OBVERSA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for place in ("home/runs/small-1/events.jsonl", ".obversa/records/small-2.jsonl"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(file.read_text())

    assert shown(capsys, "small-1") == (0, render_record(EVENTS), "")
    assert shown(capsys, "small-2") == (0, render_record(EVENTS), "")


@pytest.mark.parametrize("name", ["gone", "../../etc", "Gone", "a/b"])
def test_what_has_no_record_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("DJANGO_SETTINGS_MODULE", "DATABASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("OBVERSA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    told = f"obversa-record: there is no file and no run {name!r}.\n"
    assert shown(capsys, name) == (1, "", told)


@pytest.mark.django_db
def test_a_run_of_the_service_is_shown_the_same_by_both_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = factories.make_run()
    page = render_record(exports.record_lines(run))

    assert f"# {run.pk}\n" in page
    assert "question: Approve release abc123?" in page
    assert shown(capsys, str(run.pk)[:13]) == (0, page, "")
    assert show_record(str(run.pk)) == page


@pytest.mark.django_db
def test_an_exported_run_reads_as_the_run_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = factories.make_run()
    path = tmp_path / "run.jsonl"
    call_command("export_run", str(run.pk), str(path))

    assert shown(capsys, str(path)) == shown(capsys, str(run.pk))
    for form in ((), ("--json",), ("--events",)):
        assert show_record(str(path), *form) == show_record(str(run.pk), *form)


@pytest.mark.django_db
def test_a_run_nobody_has_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "dcba0000") == (1, "", "obversa-record: There is no run dcba0000.\n")
    assert "4 digits" in shown(capsys, "small-9")[2]


def show_record(*arguments: str) -> str:
    out = StringIO()
    call_command("show_record", *arguments, stdout=out)
    return out.getvalue()


def test_the_console_script_needs_no_django_for_a_file(file: Path) -> None:
    code = (
        "import sys\n"
        "from runs.record_command import main\n"
        "code = main(sys.argv[1:])\n"
        "sys.exit(code or 'django' in sys.modules)\n"
    )
    # A terminal that knows no other letters than ASCII still gets the page.
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("# small-1\n")


def test_who_closes_the_pipe_has_read_enough(file: Path) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, *lines[2:4] * 5000]))

    ran = subprocess.run(
        f"'{sys.executable}' -m runs.record_command '{file}' | head -1",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.stdout, ran.stderr) == ("# small-1\n", "")


def test_the_package_installs_the_command() -> None:
    text = (ROOT / "pyproject.toml").read_text()

    assert '[project.scripts]\nobversa-record = "runs.record_command:main"\n' in text


@pytest.mark.django_db
def test_show_record_tells_each_event_with_who_did_it() -> None:
    run = factories.make_run(started_by=f"user:{factories.user('ada').pk}")

    lines = show_record(str(run.pk), "--events").splitlines()

    assert len(lines) == Run.objects.get(pk=run.pk).last_seq
    assert lines[0].startswith("    1  20")
    assert lines[0].endswith("(ada)")
    assert "run start" in lines[0]
    assert [line for line in lines if "? question: Approve release abc123?" in line]
    assert len(flows.events(run)) == len(lines)


@pytest.mark.django_db
def test_show_record_tells_the_events_of_a_file_too(file: Path) -> None:
    file.write_text(file.read_text() + "{")
    err = StringIO()
    out = StringIO()

    call_command("show_record", str(file), "--events", stdout=out, stderr=err)

    lines = out.getvalue().splitlines()
    assert len(lines) == len(EVENTS)
    assert lines[0] == "    1  2026-01-01T00:00:00.000Z  \u25b8 run start small-1"
    assert lines[2] == "    3  2026-01-01T00:00:02.000Z  g \u25b8 node a start"
    assert err.getvalue() == "1 line could not be read.\n"
