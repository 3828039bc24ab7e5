from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings

from runs import publishing, registry, services
from runs.errors import (
    IdempotencyConflict,
    NothingToResume,
    ParamsRefused,
    RunEnded,
    WorkflowBroken,
    WorkflowUnknown,
)
from runs.kernel.errors import DeclarationError
from runs.models import Attempt, Run, Workflow
from runs.record import RunUnknown
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job
from tests import flows

ONE = fn_job("one", lambda ctx: "done")
ASKS = pipeline("asks", [{"name": "ok", "job": approval("ok", "Ship {v}?")}])
SCHEMA = {
    "type": "object",
    "properties": {"v": {"type": "string", "default": "1"}, "n": {"type": "integer"}},
    "additionalProperties": False,
}


@pytest.mark.django_db
def test_a_started_run_has_its_facts_in_its_row_and_in_its_record() -> None:
    run = flows.start(ASKS, {"n": 2}, schema=SCHEMA, labels={"team": "web"}, surface="api")

    started = flows.events(run)[0]

    assert (run.workflow, run.started_by, run.params) == ("asks", "user:1", {"n": 2, "v": "1"})
    assert started.fields["params"] == run.params
    assert started.fields["labels"] == run.labels == {"team": "web"}
    assert (started.actor, started.surface) == ("user:1", "api")
    assert started.fields["definition"] == run.definition_id
    assert run.total_count == 1


@pytest.mark.django_db
def test_a_workflow_that_is_not_there_cannot_be_started() -> None:
    with pytest.raises(WorkflowUnknown, match="nothing-like-it"):
        services.start_run("nothing-like-it", actor="user:1")

    assert not Run.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("params", "named"),
    [({"n": "two"}, "n"), ({"x": 1}, "x"), ({"n": float("nan")}, "n"), ([1], "params")],
)
def test_params_that_do_not_fit_are_refused_by_name(params: object, named: str) -> None:
    with pytest.raises(ParamsRefused, match=named):
        flows.start(ASKS, params, schema=SCHEMA)  # type: ignore[arg-type]  # on purpose

    assert not Run.objects.exists()


@pytest.mark.django_db
def test_the_same_key_by_the_same_actor_gives_the_same_run() -> None:
    first = flows.start(ASKS, {"n": 1}, schema=SCHEMA, idempotency_key="k")

    again = services.start_run("asks", {"n": 1.0}, actor=flows.STARTER, idempotency_key="k")
    other = services.start_run("asks", {"n": 1}, actor="user:2", idempotency_key="k")

    assert again.pk == first.pk
    assert other.pk != first.pk
    assert flows.kinds(first).count("run:start") == 1


@pytest.mark.django_db
def test_a_key_cannot_start_something_else() -> None:
    flows.start(ASKS, {"n": 1}, schema=SCHEMA, idempotency_key="k")

    with pytest.raises(IdempotencyConflict):
        services.start_run("asks", {"n": 2}, actor=flows.STARTER, idempotency_key="k")


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["k" * 5000, "with \0 in it"])
def test_any_text_is_a_key(key: str) -> None:
    first = flows.start(ASKS, schema=SCHEMA, idempotency_key=key)

    again = services.start_run("asks", actor=flows.STARTER, idempotency_key=key)

    assert again.pk == first.pk


@pytest.mark.django_db(transaction=True)
def test_a_key_used_by_many_at_once_starts_one_run() -> None:
    flows.offer(ASKS, params=SCHEMA)

    def start(_: int) -> object:
        return services.start_run("asks", actor="user:1", idempotency_key="k").pk

    results = flows.at_once(8, start)

    assert len(set(results)) == 1
    assert Run.objects.count() == 1
    assert Attempt.objects.count() == 0


@pytest.mark.django_db
def test_a_run_that_ended_is_not_cancelled_and_not_resumed() -> None:
    run = flows.ran(ONE)

    with pytest.raises(RunEnded, match="passed"):
        services.cancel_run(run.pk, actor="user:1")
    with pytest.raises(NothingToResume, match="passed"):
        services.resume_run(run.pk, actor="user:1")

    assert flows.kinds(run)[-1] == "run:end"


@pytest.mark.django_db
def test_a_run_that_is_not_there_is_not_cancelled() -> None:
    with pytest.raises(RunUnknown):
        services.cancel_run(uuid4(), actor="user:1")


@pytest.mark.django_db
def test_a_run_that_waits_for_an_answer_is_not_resumed() -> None:
    run = flows.ran(ASKS, schema=SCHEMA)

    with pytest.raises(NothingToResume, match="waiting_for_gate"):
        services.resume_run(run.pk, actor="user:1")


@pytest.mark.django_db
def test_an_answer_that_is_held_waits_for_somebody_to_resume() -> None:
    job = pipeline(
        "holds",
        [
            {"name": "ok", "job": approval("ok", "Go?", on_answer="hold")},
            {"name": "go", "job": fn_job("go", lambda ctx: "went")},
        ],
    )
    run = flows.ran(job)

    flows.answer(run, {"approved": True})
    assert flows.work(run).status == "paused"  # type: ignore[union-attr]  # the run is given
    assert flows.statuses(run) == {"ok": "waiting", "go": "idle"}

    services.resume_run(run.pk, actor="user:1")
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert flows.kinds(run).count("callback-submitted") == 1


# --- the catalogue -------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, settings: LazySettings) -> Path:
    settings.OBVERSA_WORKFLOWS_DIR = str(tmp_path)
    return tmp_path


GOOD = (
    "from runs import fn_job, publish\n"
    "publish(fn_job({name!r}, lambda ctx: 'ok'), title='A {name}')\n"
)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import nothing_like_it\n", "nothing_like_it"),
        ("x = (\n", "SyntaxError"),
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("from runs import publish\npublish(3, title='x')\n", "no job"),
        (GOOD.format(name="half") + "1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_a_file_that_does_not_import_is_listed_and_breaks_nothing_else(
    folder: Path, text: str, told: str
) -> None:
    (folder / "good.py").write_text(GOOD.format(name="good"))
    (folder / "bad.py").write_text(text)

    registry.refresh(again=True)

    bad, good = Workflow.objects.get(pk="bad"), Workflow.objects.get(pk="good")
    assert told in bad.error
    assert bad.listed
    assert (good.error, good.listed, good.title) == ("", True, "A good")
    assert Workflow.objects.get(pk="release").error == ""
    assert "half" not in publishing.offered()
    with pytest.raises(WorkflowBroken, match="bad"):
        services.start_run("bad", actor="user:1")
    assert services.start_run("good", actor="user:1").status == "queued"


@pytest.mark.django_db
def test_a_broken_file_takes_no_workflow_of_another_file_away(folder: Path) -> None:
    (folder / "release.py").write_text("1 / 0\n")

    registry.refresh(again=True)

    assert Workflow.objects.get(pk="release").error == ""
    assert "ZeroDivisionError" in Workflow.objects.get(pk="release (does not import)").error


@pytest.mark.django_db
def test_an_error_stays_listed_however_often_the_catalogue_is_written(folder: Path) -> None:
    (folder / "bad.py").write_text("1 / 0\n")
    registry.refresh(again=True)

    registry.refresh()

    assert Workflow.objects.get(pk="bad").listed


@pytest.mark.django_db
def test_a_mended_file_loses_its_error_and_a_removed_one_its_place(folder: Path) -> None:
    (folder / "flow.py").write_text("1 / 0\n")
    registry.refresh(again=True)
    (folder / "flow.py").write_text(GOOD.format(name="flow"))

    registry.refresh(again=True)
    assert Workflow.objects.get(pk="flow").error == ""

    (folder / "flow.py").unlink()
    registry.refresh(again=True)
    assert not Workflow.objects.get(pk="flow").listed
    with pytest.raises(WorkflowUnknown):
        services.start_run("flow", actor="user:1")


@pytest.mark.django_db
def test_a_process_that_does_not_know_all_folders_takes_nothing_off_the_list(
    folder: Path, settings: LazySettings
) -> None:
    (folder / "flow.py").write_text(GOOD.format(name="flow"))
    registry.refresh(again=True)
    settings.OBVERSA_WORKFLOWS_DIR = ""

    registry.refresh(again=True, alone=False)

    assert Workflow.objects.get(pk="flow").listed


@pytest.mark.django_db
def test_an_audience_that_cannot_be_is_an_error_of_its_workflow_alone(folder: Path) -> None:
    (folder / "flow.py").write_text(
        "from runs import fn_job, publish\n"
        "publish(fn_job('odd', str), title='Odd', audience={'everybody': []})\n"
    )

    registry.refresh(again=True)

    assert "everybody" in Workflow.objects.get(pk="odd").error
    assert Workflow.objects.get(pk="release").error == ""


@pytest.mark.parametrize(
    ("label", "title"), [("a\0b", "x"), ("x" * 301, "x"), ("x", "y" * 301), ("x", "")]
)
def test_names_that_no_column_takes_are_refused_where_they_are_written(
    label: str, title: str
) -> None:
    with pytest.raises(DeclarationError):
        publishing.publish(fn_job(label, str), title=title, name="odd-names")

    assert "odd-names" not in publishing.offered()


def test_a_path_that_no_index_takes_is_refused() -> None:
    job = pipeline("p" * 300, [{"name": "n" * 300, "job": fn_job("x", str)}])
    for depth in range(4):
        job = pipeline("p" * 299 + str(depth), [{"name": "n" * 300, "job": job}])

    with pytest.raises(DeclarationError, match="too long together"):
        publishing.publish(job, title="Deep", name="deep-names")
