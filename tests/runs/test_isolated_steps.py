"""Isolated steps, proofs and variables under workers (runs.md R67, R74, R128, R239)."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from runs import sweep
from runs.artifacts import store
from runs.attempts import worker
from runs.drivers.context import Context
from runs.engines.worktree import open_fork
from runs.kernel.jsonable import canonical_json
from runs.models import Attempt, Run
from runs.shapes.dag import pipeline
from runs.shapes.env import with_env
from runs.shapes.isolating import isolated
from runs.shapes.proving import prove
from runs.shapes.steps import command_job, fn_job
from tests import factories, flows
from tests.pages import client_of, page_of
from tests.repos import branches, make_repo, subjects

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.OBVERSA_HOME = tmp_path / "home"
    return tmp_path / "home"


def folder(run: Run, home: Path) -> Path:
    return home / "workspaces" / str(run.pk)


def clones(ctx: Context) -> None:
    make_repo(ctx.workspace.dir, a__txt="one\n")


def changes(ctx: Context) -> str:
    (ctx.workspace.dir / "new.txt").write_text("n")
    return "made it new"


def change(how: str, body: Any = changes) -> Any:
    job = fn_job("change", body)
    last = {"name": "change", "job": isolated(job) if how == "wrapped" else job}
    if how == "node":
        last["isolate"] = True
    return pipeline("apart", [{"name": "clone", "job": fn_job("clone", clones)}, last])


@pytest.mark.parametrize(("how", "branch"), [("node", "apart-change"), ("wrapped", "isolated")])
def test_a_worker_lands_what_an_isolated_step_did(home: Path, how: str, branch: str) -> None:
    run = flows.ran(change(how))

    assert flows.fresh(run).status == "passed", flows.fresh(run).outcome
    where = folder(run, home)
    assert subjects(where) == [f"Land lines/{branch}-1", "made it new", "first"]
    assert branches(where) == ["main"]
    assert [path.name for path in where.parent.iterdir()] == [where.name]


@pytest.mark.parametrize("how", ["node", "wrapped"])
@pytest.mark.parametrize("action", ["run-again", "fail"])
def test_r239_an_interrupted_one_is_asked_about_before_there_is_a_new_fork(
    home: Path, how: str, action: str
) -> None:
    run = flows.start(change(how))
    where = folder(run, home)
    worker.execute(flows.ready(run)[0], onward=0)
    flows.claimed(run)
    name = "apart-change" if how == "node" else "isolated"
    left = open_fork(where, name, lambda: False)
    (left.dir / "half.txt").write_text("h")
    Attempt.objects.filter(status=Attempt.Status.RUNNING).update(
        lease_until=F("lease_until") - timedelta(minutes=1)
    )
    flows.forget()
    for _ in range(2):
        sweep.sweep()
        flows.work(run)
    (question,) = flows.pending(run)
    assert '"enum":["run-again","fail"]' in canonical_json(question.response_schema)
    assert branches(where) == [f"lines/{name}-1", "main"]

    flows.answer(run, {"action": action})
    flows.work(run)
    landed = [f"Land lines/{name}-2", "made it new", "first"]
    assert subjects(where) == (landed if action == "run-again" else ["first"])
    assert flows.fresh(run).status == ("passed" if action == "run-again" else "failed")
    assert branches(where) == [f"lines/{name}-1", "main"]
    assert (left.dir / "half.txt").exists()
    assert not (where / "half.txt").exists()


def test_i2_a_worker_that_lost_its_step_lands_nothing(home: Path) -> None:
    def stalls(ctx: Context) -> str:
        Attempt.objects.filter(status=Attempt.Status.RUNNING).update(fence="another's")
        return changes(ctx)

    run = flows.start(change("node", stalls))
    worker.execute(flows.ready(run)[0], onward=0)
    worker.execute(flows.ready(run)[0], onward=0)

    assert subjects(folder(run, home)) == ["first"]
    assert branches(folder(run, home)) == ["main"]
    assert flows.kinds(run)[-1] == "step:refused"


def test_r67_the_bytes_of_a_proof_are_kept_with_the_run() -> None:
    def page(ctx: Context) -> Any:
        (ctx.workspace.dir / "page.html").write_text("<p>green</p>")
        return {"kind": "html", "path": "page.html", "title": "Page"}

    run = flows.ran(prove("page", page))
    (proof,) = flows.events(run, "proof")

    assert flows.fresh(run).status == "passed"
    with store.open_bytes(proof.fields["artifact"]["digest"]) as kept:
        assert kept.read() == b"<p>green</p>"
    (row,) = run.artifacts.all()
    assert (row.name, row.media_type) == ("page.html", "text/html")


def test_the_page_of_a_run_shows_the_file_of_an_isolated_proof() -> None:
    def page(ctx: Context) -> Any:
        (ctx.workspace.dir / "page.html").write_text("<p>green</p>")
        return {"kind": "html", "path": "page.html"}

    job = pipeline(
        "proven",
        [
            {"name": "clone", "job": fn_job("clone", clones)},
            {"name": "prove", "job": isolated(prove("page", page)), "isolate": True},
        ],
    )
    run = flows.ran(job)
    client = client_of(factories.ada())
    shown = page_of(client.get(run.get_absolute_url()))

    assert flows.fresh(run).status == "passed"
    assert "page.html" in shown.by_id("run-artifacts").text


def test_r74_r227_a_worker_sets_variables_and_records_none() -> None:
    script = "import os; print('it is', os.environ['DEPLOY_TOKEN'])"
    job = pipeline(
        "vars",
        [
            {"name": "show", "job": command_job("show", [sys.executable, "-c", script])},
            {"name": "keep", "job": fn_job("keep", keeps)},
        ],
    )
    run = flows.ran(with_env(job, {"DEPLOY_TOKEN": "zebra-crossing-77"}))

    assert flows.fresh(run).status == "passed"
    told = [event.to_wire() for event in flows.events(run)]
    assert "it is [redacted]" in json.dumps(told)
    assert "zebra" not in json.dumps(told)


def keeps(ctx: Context) -> None:
    ctx.state["token"] = ctx.env_overlay["DEPLOY_TOKEN"]


@pytest.mark.django_db(transaction=True)
def test_a_step_may_speak_from_threads_of_its_own() -> None:
    def work(ctx: Context) -> str:
        ctx.side_by_side([partial(ctx.log, f"line {number}") for number in range(6)])
        return "said"

    run = flows.ran(fn_job("talk", work))
    lines = sorted(event.fields["message"] for event in flows.events(run, "log"))
    assert lines == [f"line {number}" for number in range(6)]
