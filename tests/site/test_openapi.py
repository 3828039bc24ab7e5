from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest
import schemathesis
from django.http.response import HttpResponseBase
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gates.keys import create_key
from gates.models import Request
from gates.schemas import RequestKind, RequestStatus
from obversa_site.api import STATUS
from obversa_site.api_docs import described, example_of
from runs import fn_job
from runs.models import Run
from runs.schemas import RunStatus
from tests import factories, flows

pytestmark = pytest.mark.django_db

SCOPES = ("read", "start", "claim", "answer", "operate")
# What every operation may answer, whatever it does.
ALWAYS = {"401", "403", "429"}


@cache
def document() -> dict[str, Any]:
    return described()


def operations() -> list[tuple[str, str]]:
    return [(method, path) for path, methods in document()["paths"].items() for method in methods]


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][path][method]
    return found


def validator(schema: Any) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document()["components"]})


def contents(method: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The body and the good answers of an operation, each with its media type."""
    one = operation(method, path)
    parts = [one.get("requestBody", {})]
    parts += [answer for status, answer in one["responses"].items() if status < "300"]
    for part in parts:
        yield from part.get("content", {}).items()


def test_the_description_is_a_sound_openapi_document() -> None:
    schema = schemathesis.openapi.from_dict(document())

    schema.validate()
    assert document()["openapi"].startswith("3.1")
    assert set(document()["components"]["securitySchemes"]) == {"Bearer", "Session"}
    names = [operation(method, path)["operationId"] for method, path in operations()]
    assert len(names) == len(set(names))


def test_the_statuses_it_names_are_those_of_the_tables() -> None:
    assert set(get_args(RunStatus)) == set(Run.Status.values)
    assert set(get_args(RequestStatus)) == set(Request.Status.values)
    assert set(get_args(RequestKind)) == set(Request.Kind.values)


def test_it_describes_every_address_of_the_design() -> None:
    addresses = {f"{method.upper()} {path}" for method, path in operations()}

    assert addresses == {
        f"{method} /api/v1{path}"
        for method, path in (
            ("POST", "/requests"),
            ("GET", "/requests"),
            ("GET", "/requests/{id}"),
            ("GET", "/requests/{id}/history"),
            ("GET", "/requests/{id}/receipt"),
            ("GET", "/receipt-key"),
            ("GET", "/grants"),
            ("POST", "/grants/{id}/revoke"),
            ("POST", "/requests/{id}/claim"),
            ("POST", "/requests/{id}/release"),
            ("POST", "/requests/{id}/submit"),
            ("POST", "/requests/{id}/force-release"),
            ("POST", "/requests/{id}/withdraw"),
            ("POST", "/requests/{id}/assign"),
            ("POST", "/requests/{id}/delegate"),
            ("POST", "/requests/{id}/break-glass"),
            ("GET", "/workflows"),
            ("POST", "/runs"),
            ("GET", "/runs"),
            ("GET", "/runs/{id}"),
            ("GET", "/runs/{id}/events"),
            ("GET", "/runs/{id}/stream"),
            ("GET", "/runs/{id}/artifacts/{digest}"),
            ("POST", "/runs/{id}/cancel"),
            ("POST", "/runs/{id}/resume"),
            ("POST", "/runs/{id}/retry"),
            ("POST", "/runs/{id}/rerun"),
        )
    }


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_says_what_it_does_and_who_may(method: str, path: str) -> None:
    one = operation(method, path)

    assert one["summary"]
    assert one["description"]
    assert one["tags"][0] in {tag["name"] for tag in document()["tags"]}
    assert one["security"] == [{"Bearer": []}, {"Session": []}]
    for parameter in one["parameters"]:
        assert parameter["description"], parameter["name"]
        assert "example" in parameter, parameter["name"]


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_has_examples_that_fit_their_schemas(method: str, path: str) -> None:
    for media_type, content in contents(method, path):
        if media_type != "application/json":
            assert "schema" in content
            continue
        example = example_of(document(), content["schema"])
        assert example is not None
        validator(content["schema"]).validate(example)


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_lists_its_refusals_with_their_codes(method: str, path: str) -> None:
    answers = operation(method, path)["responses"]

    expected = set(ALWAYS)
    if "{" in path:
        expected.add("404")
    if "requestBody" in operation(method, path):
        expected |= {"400", "413", "422"}
    assert expected <= set(answers)
    for status, answer in answers.items():
        for code, example in (
            answer["content"]["application/json"].get("examples", {}).items()
            if (status >= "400")
            else ()
        ):
            assert STATUS[code] == int(status)
            assert example["value"]["error"]["code"] == code
            validator(answer["content"]["application/json"]["schema"]).validate(example["value"])


# The description against the thing itself


class World:
    """A question, a run that waits and one that ended, and a key that may do everything."""

    def __init__(self) -> None:
        self.gate = factories.external_request(audience={}, by=factories.key("asker"))
        self.ended = flows.ran(
            fn_job("attach", lambda ctx: ctx.attach("a.txt", b"1") and None), name="files"
        )
        self.headers = {"Authorization": f"Bearer {create_key('all', SCOPES)[1]}"}
        self.client = Client(raise_request_exception=True)

    def send(self, case: Any, *, real: bool) -> HttpResponseBase:
        """Send what was made up; `real` puts ids in its path that exist."""
        places = dict(case.path_parameters or {})
        if real:
            is_request = case.path.startswith("/api/v1/requests")
            places["id"] = str(self.gate.pk if is_request else self.ended.pk)
        address = case.path
        for name, value in places.items():
            address = address.replace(f"{{{name}}}", str(value))
        query = {name: value for name, value in (case.query or {}).items() if value is not None}
        if "wait" in query:
            query["wait"] = 0
        body = b"" if isinstance(case.body, type(schemathesis.core.NOT_SET)) else text(case.body)
        return self.client.generic(
            case.method,
            address,
            body,
            content_type="application/json",
            query_params=query,
            headers={**self.headers, **sendable(case.headers or {})},
        )


def text(body: Any) -> bytes:
    return json.dumps(body).encode("utf-8", "replace")


def sendable(headers: Any) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in headers.items()
        if name.lower() in ("last-event-id", "idempotency-key")
    }


@pytest.mark.parametrize(("method", "path"), operations())
def test_what_is_sent_at_random_is_answered_as_described(method: str, path: str) -> None:
    world = World()
    schema = schemathesis.openapi.from_dict(document())
    known = operation(method, path)["responses"]

    @given(case=schema[path][method.upper()].as_strategy(), real=st.booleans())
    @settings(
        max_examples=30,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any, real: bool) -> None:
        response = world.send(case, real=real)
        status = str(response.status_code)
        assert status in known, getattr(response, "content", b"")[:500]
        if response.headers["Content-Type"] == "application/json":
            content = known[status]["content"]["application/json"]
            validator(content["schema"]).validate(response.json())  # type: ignore[attr-defined]  # the test client adds it
        if response.streaming:
            assert b"".join(response.streaming_content)  # type: ignore[attr-defined]  # it streams

    check()


# The page


def test_the_page_shows_every_operation_and_loads_nothing_from_elsewhere(client: Client) -> None:
    client.force_login(factories.user("ada"))

    page = client.get("/api/v1/docs")

    body = page.content.decode()
    assert page.status_code == 200
    for method, path in operations():
        assert f'id="{operation(method, path)["operationId"]}"' in body
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    sources = [part.split('"')[0] for part in body.split('src="')[1:]]
    assert all(source.startswith("/static/") for source in sources)
    assert " style=" not in body
    assert "<script>" not in body


def test_the_page_asks_for_a_sign_in(client: Client) -> None:
    page = client.get("/api/v1/docs")

    assert page.status_code == 302
    assert page.headers["Location"] == "/sign-in/?next=/api/v1/docs"
