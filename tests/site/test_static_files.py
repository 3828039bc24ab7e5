"""What a browser loads beside a page: once, and no more bytes than it takes."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client, RequestFactory

from obversa_site.middleware import Smaller
from obversa_site.static import FOR_GOOD, Files
from tests.factories import user


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> str:
    """As in the process of `up`."""
    monkeypatch.setattr(Files, "mark", "")
    Files.mark_names()
    return Files.mark


@pytest.mark.django_db
def test_the_files_of_up_are_kept_for_good(client: Client, marked: str) -> None:
    page = client.get("/sign-in/").content.decode()
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)

    assert len(addresses) > 20
    for address in addresses:
        assert address.startswith(f"/static/v-{marked}/")
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == FOR_GOOD


def test_a_page_from_before_gets_todays_file_and_may_not_keep_it(
    client: Client, marked: str
) -> None:
    before = client.get("/static/v-000000000000/js/dom.js")

    assert before.status_code == 200
    assert before.content == client.get("/static/js/dom.js").content
    assert "immutable" not in before.headers["Cache-Control"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["v-000000000000/", "v-000000000000/nothing.js", "v-0/js/dom.js", "v-000000000000/../x"]
)
def test_an_address_with_a_mark_and_no_file_is_not_there(client: Client, path: str) -> None:
    assert client.get(f"/static/{path}").status_code == 404


def test_collected_modules_name_each_other_by_their_fingerprints(
    tmp_path: Path, settings: Any
) -> None:
    settings.STATIC_ROOT = str(tmp_path)
    call_command("collectstatic", interactive=False, verbosity=0)

    modules = [
        path for path in (tmp_path / "js").glob("*.js") if re.search(r"\.[0-9a-f]{12}\.", path.name)
    ]
    named = [
        name
        for path in modules
        for name in re.findall(r"(?:from|import)\s*\(?\s*[\"'](\.[^\"']+)[\"']", path.read_text())
    ]
    assert len(named) > 40
    assert [name for name in named if not re.search(r"\.[0-9a-f]{12}\.js$", name)] == []
    assert [path for path in modules if not path.with_name(f"{path.name}.gz").exists()] == []


@pytest.mark.django_db
def test_a_page_is_sent_compressed_and_an_answer_for_programs_is_not(client: Client) -> None:
    client.force_login(user("ada"))
    asked = {"Accept-Encoding": "gzip"}

    page = client.get("/workflows/", headers=asked)
    assert page.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in page.headers["Vary"]
    assert b"</html>" in gzip.decompress(page.content)
    assert len(page.content) < len(gzip.decompress(page.content)) / 2

    told = client.get("/api/v1/openapi.json", headers=asked)
    assert told.status_code == 200
    assert "Content-Encoding" not in told.headers
    assert "Content-Encoding" not in client.get("/workflows/").headers


def test_the_length_of_a_compressed_page_tells_nothing_of_it(rf: RequestFactory) -> None:
    page: Any = Smaller(lambda _request: HttpResponse("the same page " * 100))
    request = rf.get("/", headers={"Accept-Encoding": "gzip"})

    lengths = {len(page(request).content) for _ in range(40)}

    assert len(lengths) > 5
