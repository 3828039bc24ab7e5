from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client
from ninja import NinjaAPI
from ninja.errors import Throttled
from ninja.throttling import BaseThrottle

import gates
import obversa_site
import runs
from gates.errors import GateError
from gates.models import Request
from obversa_site import openapi
from obversa_site.api import STATUS, api
from runs.errors import RunsError
from tests import factories

pytestmark = pytest.mark.django_db

# The same fact met in two places: a program need not know which of them it was.
SAID_TWICE = {"cursor", "not-found"}
# Said of a record or by a run in a file, never to a caller of the API: a record that tells an
# impossible story is a fault of ours.
ABOUT_A_RECORD = {"CALLBACK_SEQUENCE", "busy", "record-damaged"}


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for part in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if "migrations" not in part.name and "asgi" not in part.name:
            yield importlib.import_module(part.name)


def refusals() -> dict[str, set[type[Exception]]]:
    """Every error of the product that has a code, by its code."""
    found: dict[str, set[type[Exception]]] = defaultdict(set)
    for package in (runs, gates, obversa_site):
        for module in modules(package):
            for thing in vars(module).values():
                if isinstance(thing, type) and issubclass(thing, Exception):
                    code = getattr(thing, "code", None)
                    if thing.__module__ == module.__name__ and isinstance(code, str) and code:
                        found[code].add(thing)
    return found


def test_every_code_has_a_status_and_every_status_a_code_that_somebody_raises() -> None:
    raised = set(refusals()) - ABOUT_A_RECORD
    said_by_the_api = {
        "bad-request", "failed", "method-not-allowed", "too-large", "too-many-requests",
        "validation",
    }  # fmt: skip

    assert raised - set(STATUS) == set()
    assert set(STATUS) - raised == said_by_the_api


def test_no_two_refusals_share_a_code() -> None:
    shared = {code for code, errors in refusals().items() if len(errors) > 1}

    assert shared <= SAID_TWICE


def test_every_refusal_has_a_code() -> None:
    nameless = [
        error.__name__
        for base in (RunsError, GateError)
        for error in descendants(base)
        if not error.__dict__.get("code")
    ]

    assert nameless == []


def descendants(base: type[Any]) -> Iterator[type[Any]]:
    for child in base.__subclasses__():
        yield child
        yield from descendants(child)


def test_there_is_no_second_table_of_statuses() -> None:
    root = Path(obversa_site.__file__).parents[1]
    table = re.compile(r"""["'](claimed|not-owner|stale|answered)["']\s*:\s*4\d\d""")
    holding = [
        str(path.relative_to(root))
        for package in ("runs", "gates", "obversa_site")
        for path in (root / package).rglob("*.py")
        if table.search(path.read_text())
    ]

    assert holding == ["obversa_site/api.py"]


def test_every_example_message_belongs_to_a_code() -> None:
    assert set(openapi.MESSAGES) <= set(STATUS)


# How each refusal looks to a program.


@pytest.fixture
def ada(client: Client) -> Client:
    client.force_login(factories.user("ada"))
    return client


def error_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) <= {"code", "message", "field", "details"}
    assert body["error"]["message"].endswith(".")
    error: dict[str, Any] = body["error"]
    return error


def post(client: Client, path: str, body: bytes | str) -> Any:
    return client.post(f"/api/v1{path}", body, content_type="application/json")


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        '{"workflow": "a"',
        '{"params": {"n": NaN}}',
        '{"params": {"n": -Infinity}}',
        '{"params": {"n": 1e400}}',
        '{"params": {"n": 9007199254740993}}',
        '{"params": {"n": ' + "9" * 5000 + "}}",
        '{"params": {"a": 1, "a": 2}}',
        '{"params": {"s": "\\ud800"}}',
        '{"params": ' + '{"a":' * 300 + "1" + "}" * 300 + "}",
        '{"params": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "\ufeff{}",
    ],
    ids=lambda body: body[:24],
)
def test_a_body_that_is_not_json_to_the_letter_is_refused(ada: Client, body: str) -> None:
    error = error_of(post(ada, "/runs", body.encode("utf-8", "surrogatepass")), 400)

    assert error["code"] == "INVALID_JSON_VALUE"
    assert "path" in error["details"]


def test_a_body_that_is_not_utf8_is_refused(ada: Client) -> None:
    assert (
        error_of(post(ada, "/runs", b'{"workflow": "\xff"}'), 400)["code"] == "INVALID_JSON_VALUE"
    )


def test_the_value_at_fault_is_named_by_its_pointer(ada: Client) -> None:
    error = error_of(post(ada, "/runs", '{"params": {"a/b": [0, 1e999]}}'), 400)

    assert error["details"] == {"path": "/params/a~1b/1"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "workflow"),
        ([], ""),
        ("text", ""),
        (None, ""),
        ({"workflow": 7}, "workflow"),
        ({"workflow": "a\0b"}, "workflow"),
        ({"workflow": ""}, "workflow"),
        ({"workflow": "a", "params": []}, "params"),
        ({"workflow": "a", "labels": {"team": 7}}, "labels.team"),
        ({"workflow": "a", "param": {}}, "param"),
    ],
)
def test_a_body_that_does_not_fit_names_its_field(ada: Client, body: Any, field: str) -> None:
    error = error_of(post(ada, "/runs", json.dumps(body)), 422)

    assert error["code"] == "validation"
    assert error.get("field", "") == field
    assert error["details"]["fields"][0]["field"] == field


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("status=open", "status"),
        ("q=%00", "q"),
        ("workflow=" + "x" * 201, "workflow"),
    ],
)
def test_a_query_that_does_not_fit_names_its_field(ada: Client, query: str, field: str) -> None:
    error = error_of(ada.get(f"/api/v1/runs?{query}"), 422)

    assert error["field"] == field


@pytest.mark.parametrize("cursor", ["x", "e30", "WzFd", "WyJ4IiwieSJd", "%F0%9F%98%80", "bnVsbA"])
@pytest.mark.parametrize("listed", ["runs", "workflows", "requests"])
def test_a_made_up_cursor_is_refused(ada: Client, listed: str, cursor: str) -> None:
    response = ada.get(f"/api/v1/{listed}?cursor={cursor}")

    error = error_of(response, 422)
    assert (error["code"], error["field"]) == ("cursor", "cursor")


@pytest.mark.parametrize(
    "path",
    ["", "nothing", "requests/7", "runs/not-an-id", "runs/../x", "requests/" + "0" * 36, "docs/"],
)
def test_an_unknown_address_is_json_as_well(ada: Client, path: str) -> None:
    assert error_of(ada.get(f"/api/v1/{path}"), 404)["code"] == "not-found"
    assert error_of(post(ada, f"/{path}", "{}"), 404)["code"] == "not-found"


def test_a_wrong_method_says_which_ones_there_are(ada: Client) -> None:
    response = ada.delete("/api/v1/runs")

    assert error_of(response, 405)["code"] == "method-not-allowed"
    assert response.headers["Allow"] == "GET, POST"
    assert error_of(ada.put(f"/api/v1/runs/{'0' * 8}-0000-4000-8000-{'0' * 12}/stream"), 405)


def test_a_body_over_two_mebibytes_is_refused(ada: Client) -> None:
    response = post(ada, "/requests", b" " * (2 * 1024 * 1024 + 1))

    assert error_of(response, 413)["code"] == "too-large"


def test_too_many_requests_say_when_to_come_back(ada: Client, rf: Any) -> None:
    class Never(BaseThrottle):
        def allow_request(self, request: HttpRequest) -> bool:
            return False

        def wait(self) -> float:
            return 7.5

    throttled = NinjaAPI(urls_namespace="throttled", throttle=[Never()])
    throttled.add_exception_handler(Throttled, api._exception_handlers[Throttled])
    throttled.get("/nothing")(lambda request: None)
    view: Any = throttled.urls[0][-2].callback

    response = view(rf.get("/nothing"))

    assert response.status_code == 429
    assert json.loads(response.content)["error"]["code"] == "too-many-requests"
    assert response.headers["Retry-After"] == "8"


def test_a_fault_of_ours_is_not_dressed_up_as_a_refusal(
    ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("boom")

    monkeypatch.setattr("gates.queries.requests", broken)

    with pytest.raises(RuntimeError, match="boom"):
        ada.get("/api/v1/requests")


def test_nothing_of_the_api_is_kept_by_caches(ada: Client) -> None:
    gate: Request = factories.external_request(by=factories.key("asker"))

    for path in ("requests", f"requests/{gate.pk}", "runs", "nothing"):
        assert ada.get(f"/api/v1/{path}").headers["Cache-Control"] == "no-store"


def test_the_manual_lists_every_code_under_its_status() -> None:
    manual = (Path(obversa_site.__file__).parents[1] / "docs" / "api.md").read_text()
    rows = dict(re.findall(r"^\| ([45]\d\d) \| (.*) \|$", manual, re.MULTILINE))
    listed = {
        code: int(status)
        for status, codes in rows.items()
        for code in re.findall(r"`([A-Za-z_-]+)`", codes)
        if code not in ("field", "Retry-After", "unavailable")  # that one is the database's
    }

    assert listed == dict(STATUS)
