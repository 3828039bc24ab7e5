"""What people and programs are told of a run that is in the archive."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from gates.models import Request
from runs.archive.archiving import archive_run
from runs.models import Run
from tests import factories
from tests.gates.calls import Api, code, person
from tests.pages import client_of, page_of
from tests.runs.archive.runs_over import over
from tests.stores import using

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored(tmp_path: Path) -> Iterator[None]:
    with using("memory", tmp_path):
        yield


def gone() -> Run:
    return archive_run(over().pk)


def test_the_page_says_when_and_where_and_keeps_files_and_receipts() -> None:
    run = gone()
    row = run.archived_requests.get()

    client: Any = client_of(factories.ada())
    page = page_of(client.get(run.get_absolute_url()))

    told = page.by_id("main-content").text
    assert run.archive_name in told
    assert run.archive_digest in told
    assert f"restore_run {run.pk}" in told
    links = [link.get("href") or "" for link in page.all("a")]
    assert f"/gates/{row.pk}/receipt/" in links
    file = next(link for link in links if "/artifacts/" in link)
    assert b"".join(client.get(file).streaming_content) == b"what it was about"
    receipt = client.get(f"/gates/{row.pk}/receipt/")
    assert receipt["Content-Disposition"].startswith("attachment")
    question = client.get(f"/gates/{row.pk}/")
    assert (question.status_code, run.archive_name in question.content.decode()) == (410, True)


def test_whoever_could_not_see_it_still_cannot() -> None:
    run = gone()
    row = run.archived_requests.get()
    client = client_of(factories.cyd())

    for address in (run.get_absolute_url(), f"/gates/{row.pk}/", f"/gates/{row.pk}/receipt/"):
        assert client.get(address).status_code == 404


def test_programs_are_told_where_the_record_is(ada: Api) -> None:
    run = gone()

    told = ada.get(f"/runs/{run.pk}").json()

    assert told["archive"] == {
        "file": run.archive_name,
        "digest": run.archive_digest,
        "size": run.archive_size,
    }
    assert told["archivedAt"] is not None
    for path in ("events", "events?wait=1", "stream"):
        answer = ada.get(f"/runs/{run.pk}/{path}")
        assert code(answer) == (410, "archived")
        assert answer.json()["error"]["details"]["file"] == run.archive_name


@pytest.mark.parametrize("act", ["cancel", "resume", "retry"])
def test_nothing_is_done_to_it(act: str) -> None:
    run = gone()
    oda = person(factories.person("oda", perms=["runs.view_run", "runs.change_run"]))

    assert code(oda.post(f"/runs/{run.pk}/{act}")) == (410, "archived")
    client = client_of(factories.person("oda"))
    assert client.post(f"/runs/{run.pk}/{act}/").status_code in (302, 410)


def test_lists_show_it_and_tell_it_from_the_others(ada: Api) -> None:
    run, other = gone(), over()

    def listed(**query: Any) -> set[str]:
        return {one["id"] for one in ada.get("/runs", **query).json()["items"]}

    assert listed() == {str(run.pk), str(other.pk)}
    assert listed(archived="true") == {str(run.pk)}
    assert listed(archived="false") == {str(other.pk)}
    page = page_of(client_of(factories.ada()).get("/runs/?tab=archived"))
    (row,) = page.all("li", id=f"run-row-{run.pk}")
    assert "archived" in row.text


def test_the_record_is_shown_from_its_file() -> None:
    run = over()

    def shown(*options: str) -> str:
        out = StringIO()
        call_command("show_record", str(run.pk), *options, stdout=out)
        return out.getvalue()

    before = [shown(), shown("--events")]
    archive_run(run.pk)

    assert [shown(), shown("--events")] == before
    assert "this installation's seal" in shown("--verify")


def test_the_record_takes_no_answer_of_an_archived_question(ada: Api) -> None:
    run = over()
    row = Request.objects.get(run=run)
    archive_run(run.pk)

    answer = ada.post(f"/requests/{row.pk}/submit", {"digest": row.digest, "response": {}})

    assert code(answer) == (410, "archived")
