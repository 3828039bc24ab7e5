"""The files behind a question: looked at on its page, and nothing of them runs there."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from gates.evidence import files
from gates.models import Request
from runs import approval, dag, fn_job
from runs.artifacts import store
from runs.models import Artifact
from tests import factories
from tests.pages import Element, Page, client_of, page_of
from tests.stores import place

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def asked(*, audience: Any = None) -> Request:
    job = dag(
        "flow",
        {
            "build": fn_job("build", str),
            "other": fn_job("other", str),
            "approve": approval("approve", "Ship it?", audience=factories.FOR_ADA),
        },
    )
    row = factories.pending_gate(factories.make_run(job, audience=audience))
    step = row.run.steps.get(name="approve")
    step.needs = ["build"]
    step.save(update_fields=["needs"])
    return row


def kept(row: Request, name: str, content: bytes, media: str = "", step: str = "build") -> str:
    digest, size = store.keep(content)
    Artifact.objects.create(
        run=row.run,
        digest=digest,
        name=name,
        media_type=media or "application/octet-stream",
        size=size,
        step_path=["flow", step],
        seq=1_000 + Artifact.objects.filter(run=row.run).count(),
        created_at=timezone.now(),
    )
    return digest


def shown(row: Request, who: Any = None) -> Page:
    return page_of(client_of(who or factories.ada()).get(row.get_absolute_url()))


def item(row: Request) -> Element:
    (found,) = shown(row).all("li", data_shown=files.evidence_of(row)[0].kind)
    return found


def test_the_files_of_the_steps_before_it_are_its_evidence_and_those_beside_it_are_not() -> None:
    row = asked()
    kept(row, "mine.bin", b"1")
    kept(row, "theirs.bin", b"2", step="other")

    found = files.evidence_of(row)

    assert [(one.file.name, one.step, one.kind) for one in found] == [("mine.bin", "build", "none")]


@pytest.mark.parametrize(
    ("name", "content", "media", "kind"),
    [
        ("shot.png", PNG, "image/png", "image"),
        ("shot.png", b"<svg onload=alert(1)>", "image/png", "none"),
        ("drawing.svg", b"<svg/>", "image/svg+xml", "none"),
        ("t.csv", b"a,b\n1,2\n", "text/csv", "table"),
        ("t.tsv", b"a\tb\n1\t2\n", "", "table"),
        ("n.md", b"# Hi", "text/markdown", "markdown"),
        ("p.html", b"<p>", "text/html; charset=utf-8", "html"),
        ("d.json", b'{"a": 1}', "application/json", "json"),
        ("d.json", b'{"a": NaN}', "application/json", "none"),
        ("out.log", b"line", "", "text"),
        ("a.zip", b"PK", "application/zip", "none"),
        ("p.html", b"PK", "application/zip", "none"),
    ],
)
def test_each_kind_is_shown_in_its_way(name: str, content: bytes, media: str, kind: str) -> None:
    row = asked()
    kept(row, name, content, media)

    assert [one.kind for one in files.evidence_of(row)] == [kind]
    assert shown(row).all("li", data_shown=kind)


def test_a_picture_comes_from_the_address_of_its_file_and_is_never_sniffed() -> None:
    row = asked()
    digest = kept(row, "shot.png", PNG, "image/png")

    src = shown(row).one("img", alt="shot.png").attributes["src"]
    told = client_of(factories.ada()).get(src)
    told.close()

    assert src == f"/runs/{row.run_id}/artifacts/{digest}/"
    assert told["X-Content-Type-Options"] == "nosniff"
    assert told["Content-Type"] == "image/png"
    assert "default-src 'none'" in told["Content-Security-Policy"]


def test_a_page_is_framed_without_scripts_and_network() -> None:
    row = asked()
    kept(row, "report.html", HOSTILE.encode(), "text/html")

    frame = shown(row).one("iframe")
    told = client_of(factories.ada()).get(frame.attributes["src"])

    assert frame.get("sandbox") == ""
    assert HOSTILE not in client_of(factories.ada()).get(row.get_absolute_url()).content.decode()
    policy = told["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "; sandbox;" in policy
    assert "script" not in policy
    assert told["X-Frame-Options"] == "SAMEORIGIN"
    assert told["X-Content-Type-Options"] == "nosniff"


def test_only_pages_have_such_an_address_and_only_for_those_who_may_see_them() -> None:
    row = asked()
    page = kept(row, "report.html", b"<p>hi", "text/html")
    picture = kept(row, "shot.png", PNG, "image/png")
    other = asked()

    def status(who: Any, pk: Any, digest: str) -> int:
        return int(client_of(who).get(f"/gates/{pk}/evidence/{digest}/").status_code)

    assert status(factories.ada(), row.pk, page) == 200
    assert status(factories.ada(), row.pk, picture) == 404
    assert status(factories.ada(), other.pk, page) == 404
    assert status(factories.cyd(), row.pk, page) == 404


@pytest.mark.parametrize(
    ("name", "media"),
    [("t.csv", "text/csv"), ("n.md", "text/markdown"), ("d.json", ""), ("o.txt", "text/plain")],
)
def test_what_a_file_holds_is_text(name: str, media: str) -> None:
    row = asked()
    content = f'{{"x": "{HOSTILE}"}}' if name == "d.json" else HOSTILE
    kept(row, name, content.encode(), media)

    html = client_of(factories.ada()).get(row.get_absolute_url()).content.decode()

    assert "<script>alert(1)" not in html
    assert "<img src=x" not in html
    assert "alert(1)" in html


def test_a_long_table_and_a_long_text_are_cut_and_say_so() -> None:
    row = asked()
    kept(row, "t.csv", b"a,b\n" + b"1,2\n" * 5_000, "text/csv")

    (found,) = files.evidence_of(row)

    assert (len(found.rows), found.is_cut) == (files.TABLE_ROWS, True)
    assert "Only its beginning is shown" in item(row).text


def test_bytes_that_are_not_here_are_said_to_be_missing() -> None:
    row = asked()
    digest = kept(row, "t.csv", b"once,here", "text/csv")
    place(digest).unlink()

    assert "not in the store" in item(row).text


def test_no_more_files_are_looked_at_than_a_page_bears() -> None:
    row = asked()
    for number in range(files.MAX_FILES + 5):
        kept(row, f"{number}.txt", str(number).encode(), "text/plain")

    found = files.evidence_of(row)

    assert len(found) == files.MAX_FILES
    assert sum(one.kind == "text" for one in found) == files.MAX_PREVIEWS
