"""Requests that are larger, deeper or stranger than anybody's: each is refused in its own words."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.test import Client

from tests import factories

pytestmark = pytest.mark.django_db
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=x"


def parts(count: int, more: str = "") -> bytes:
    return (
        b"".join(
            f'--x\r\nContent-Disposition: form-data; name="a{number}"{more}\r\n\r\n1\r\n'.encode()
            for number in range(count)
        )
        + b"--x--"
    )


BODIES = {
    "deep lists": b"[" * 5_000 + b"]" * 5_000,
    "deep objects": b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
    "many fields": b"&".join(b"a%d=1" % number for number in range(3_000)),
    "many parts": parts(2_000),
    "many files": parts(300, '; filename="x"'),
    "long names": parts(3, "x" * 100_000),
    "no text": b"\xff\xfe\x00",
    "half a character": b'{"workflow":"\\ud800"}',
    "endless number": b'{"workflow": 1e400}',
    "long number": b'{"workflow": ' + b"9" * 100_000 + b"}",
    "packed": gzip.compress(b"{}" + b" " * 5_000_000),
}


@pytest.fixture
def root(client: Client) -> Client:
    client.force_login(factories.user("root", is_superuser=True, is_staff=True))
    return client


@pytest.mark.parametrize("kind", [JSON, FORM, PARTS, "multipart/form-data", "text/xml", ""])
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_body_is_refused_by_the_api_in_json(root: Client, name: str, kind: str) -> None:
    for path in ("/api/v1/runs", "/api/v1/requests"):
        answer: Any = root.generic("POST", path, BODIES[name], content_type=kind)
        assert answer.status_code in (400, 422), path
        assert answer.json()["error"]["code"] in ("INVALID_JSON_VALUE", "validation")


@pytest.mark.parametrize("kind", [FORM, PARTS, "multipart/form-data", f"{FORM}; charset=nonsense"])
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_form_is_refused_by_the_pages(name: str, kind: str) -> None:
    for path in ("/sign-in/", "/settings/quiet-hours/", "/runs/"):
        answer = Client().generic("POST", path, BODIES[name], content_type=kind)
        assert answer.status_code in (200, 302, 400, 403, 405, 422), path


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd"])
def test_nothing_is_unpacked(root: Client, encoding: str) -> None:
    """A small body stays small: no middleware reads Content-Encoding."""
    body = BODIES["packed"]
    assert len(body) < 10_000

    answer = root.generic(
        "POST", "/api/v1/runs", body, content_type=JSON, headers={"Content-Encoding": encoding}
    )

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "path", ["runs", "requests", "workflows", "grants", "runs/00000000-0000-0000-0000-000000000000"]
)
def test_a_thousand_parameters_are_refused_in_json(root: Client, path: str) -> None:
    answer: Any = root.get(f"/api/v1/{path}?" + "&".join(f"a{n}=1" for n in range(1_500)))

    assert answer.headers["Content-Type"] == JSON
    assert answer.json()["error"]["code"] in ("validation", "not-found")
    assert answer.status_code in (404, 422)


@pytest.mark.parametrize("path", ["/", "/runs/", "/workflows/", "/teams/", "/notifications/"])
def test_a_thousand_parameters_are_refused_by_the_pages(root: Client, path: str) -> None:
    many = "&".join(f"a{number}=1" for number in range(1_500))

    assert root.get(f"{path}?{many}").status_code in (200, 400, 404)
    assert root.get(f"{path}?q={'x' * 100_000}").status_code in (200, 400, 404)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer " + "x" * 100_000),
        ("Authorization", "Bearer obv_" + "0" * 12 + "_" + "\u00e9" * 43),
        ("X-CSRFToken", "x" * 100_000),
        ("Idempotency-Key", "x" * 100_000),
        ("Last-Event-ID", "9" * 100_000),
        ("Cookie", "sessionid=" + "x" * 100_000),
        ("Cookie", "; ".join(f"a{number}=1" for number in range(3_000))),
        ("Accept-Language", "en;q=0." + "1" * 50_000),
        ("Range", "bytes=" + "0-1," * 20_000),
        ("If-None-Match", '"x",' * 20_000),
        ("If-Modified-Since", "9" * 50_000),
        ("X-Request-ID", "x\t" * 20_000),
        ("traceparent", "00-" + "f" * 50_000),
        ("HX-Current-URL", "http://" + "x" * 50_000),
    ],
)
def test_a_header_of_any_length_is_answered(root: Client, name: str, value: str) -> None:
    for path in ("/", "/api/v1/runs", "/static/css/app.css", "/sign-in/"):
        answer = root.get(path, headers={name: value})
        assert answer.status_code < 500, path
        answer.getvalue()


@pytest.mark.parametrize("path", ["runs/%0A", "runs/a%0Ab/cancel", "requests/%0D%0A/assign", "%0A"])
def test_a_line_break_in_an_address_is_answered_in_json(root: Client, path: str) -> None:
    for method in ("get", "post"):
        answer = getattr(root, method)(f"/api/v1/{path}")
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, JSON)
        assert answer.json()["error"]["code"] == "not-found"


def test_a_fault_and_a_wrong_host_are_told_to_programs_in_json(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("nobody reads this")

    monkeypatch.setattr("runs.access.run_or_404", fails)
    root.raise_request_exception = False

    failed = root.get("/api/v1/runs/00000000-0000-0000-0000-000000000000")
    refused = root.get("/api/v1/runs", headers={"Host": "evil.example.com"})

    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "failed")
    assert "nobody" not in failed.content.decode()
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad-request")
