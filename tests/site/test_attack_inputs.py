"""Values made to make the service work for minutes, or to fail with a fault of ours."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gates import queries
from gates.lists.rows import question_line
from gates.templatetags.gate_text import question_markdown
from runs.inputs.validation import faults_of
from runs.kernel.answers import refusal
from runs.kernel.jsonable import JsonValueError, parse_json
from runs.plaintext import first_line
from tests import factories

pytestmark = pytest.mark.django_db

NIL = "00000000-0000-0000-0000-000000000000"


def coded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


CURSORS = [
    "x",
    "é",
    coded("[" * 150),
    coded('["\\ud800"]'),
    coded('["a\\u0000"]'),
    coded('["0001-01-01T00:00:00+23:59","x"]'),
    coded(f'[1,"9999-12-31T00:00:00Z","0001-01-01T00:00:00+23:59","{NIL}"]'),
    coded(f'[1,"9999-12-31T23:59:59-23:59","2001-01-01T00:00:00Z","{NIL}"]'),
    coded('[1,"9999-12-31T00:00:00Z","2001-01-01T00:00:00Z",5]'),
    coded('[true,"9999-12-31T00:00:00Z","2001-01-01T00:00:00Z","x"]'),
]


@pytest.fixture
def ada(client: Client) -> Client:
    client.force_login(factories.user("ada", groups=["Release"]))
    return client


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("path", ["/workflows", "/runs", "/requests"])
def test_a_made_up_cursor_is_refused_by_the_api(ada: Client, path: str, cursor: str) -> None:
    response = ada.get(f"/api/v1{path}", {"cursor": cursor})

    assert response.status_code == 422
    assert response.json()["error"]["code"] in ("cursor", "validation")


@pytest.mark.parametrize("cursor", CURSORS)
def test_a_made_up_cursor_is_refused_by_the_pages(ada: Client, cursor: str) -> None:
    team = factories.user("ada").groups.get()

    for path in ("/", f"/teams/{team.pk}/", "/grants/"):
        assert ada.get(path, {"cursor": cursor}).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        {"before": "²"},
        {"before": "9" * 5000},
        {"before": "-1"},
        {"before": "\0"},
        {"q": "\0", "workflow": "\0", "tab": "\0"},
        {"q": "-" * 36},
        {"q": "%" * 200},
    ],
)
def test_odd_queries_are_read_as_nothing(ada: Client, query: dict[str, str]) -> None:
    run = factories.make_run(started_by=f"user:{factories.user('ada').pk}")

    for path in ("/", "/runs/", run.get_absolute_url()):
        assert ada.get(path, query).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/workflows/%00/start/",
        "/workflows/a%00/start/",
        f"/runs/{NIL}/artifacts/%00/",
        f"/runs/{NIL}/artifacts/..%2f..%2fsecret.key/",
        "/static/..%2fobversa_site/settings.py",
        "/static/%00",
        f"/teams/{10**30}/",
        f"/teams/{'9' * 5000}/",
        f"/runs/{NIL}/steps/{10**30}/question/",
        f"/api/v1/runs/{NIL}/artifacts/%00",
        f"/api/v1/runs/{NIL}/artifacts/..%2f..%2fsecret.key",
    ],
)
def test_addresses_that_lead_nowhere_are_not_found(ada: Client, path: str) -> None:
    assert ada.get(path).status_code == 404


def test_the_edge_of_a_list_of_runs_is_a_run_that_the_reader_sees(ada: Client) -> None:
    hidden = factories.make_run(factories.release_job(audience={"users": ["ben"]}))
    own = factories.make_run(started_by=f"user:{factories.user('ada').pk}")

    rows = ada.get("/runs/", {"before": str(hidden.pk)}).context["rows"]

    assert [row.id for row in rows] == [str(own.pk)]


def test_a_pointer_into_the_subject_may_hold_any_text(ada: Client) -> None:
    pointers = ["/list/²", "/list/" + "9" * 5000, "/list/-1", "/list/٣", "/~", "", "list"]
    row = factories.external_request(
        input={"list": [1, 2, 3, 4]},
        presentation={
            "summary": [{"label": "x", "pointer": one, "count": one} for one in pointers]
        },
    )

    assert ada.get(row.get_absolute_url()).status_code == 200


# --- bombs ----------------------------------------------------------------------------------------


def seconds(work: Any, *args: Any) -> float:
    began = time.process_time()
    work(*args)
    return time.process_time() - began


def test_a_repeated_name_among_many_is_found_in_one_walk() -> None:
    members = ",".join(f'"{number}":0' for number in range(100_000))

    def read() -> None:
        with pytest.raises(JsonValueError, match="'99999' appears twice"):
            parse_json(f'{{{members},"99999":0}}')

    assert seconds(read) < 5


@pytest.mark.parametrize("mark", ["[", "![", "[a](", "*a_", "> ", "|", "`", "\\"])
def test_no_text_keeps_its_reader_busy(mark: str) -> None:
    text = (mark * 200_000)[:200_000]

    assert seconds(question_line, text) < 1
    assert seconds(first_line, text) < 1
    assert seconds(question_markdown, text) < 10


def twice(levels: int, leaf: Any) -> dict[str, Any]:
    """A schema that looks 2^levels times at the field `a`."""
    named = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(levels)
    }
    return {
        "$defs": {**named, f"d{levels}": leaf},
        "properties": {"a": {"$ref": "#/$defs/d0"}},
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (twice(20, {}), 1),
        (twice(10, {"uniqueItems": True}), [str(number) for number in range(50_000)]),
        (twice(10, {"items": True}), [0] * 400_000),
        (twice(10, {"contains": False}), [0] * 400_000),
        (twice(10, {"pattern": "(a|b|c|d)*x"}), "a" * 100_000),
        (twice(10, {"const": [[0]] * 20_000}), [[0]] * 20_000),
        ({"properties": {"a": {"anyOf": [{"type": "integer"}] * 5_000}}}, "x" * 1_000_000),
        ({"properties": {"a": {"anyOf": [{"type": "integer"}] * 5_000}}}, {"b": ["x" * 900_000]}),
    ],
)
def test_no_schema_asks_for_the_same_work_for_ever(schema: Any, value: Any) -> None:
    assert seconds(faults_of, schema, {"a": value}) < 10


def test_a_long_value_is_written_out_once_for_all_choices() -> None:
    choices = [*range(20_000), "x" * 100_000]
    schema = {"properties": {"a": {"type": "string", "enum": choices}}}

    assert refusal(schema, {"a": "x" * 100_000}) is None


def test_a_large_honest_answer_is_checked_to_its_end() -> None:
    rows = {"type": "array", "uniqueItems": True, "items": {"type": "object", "required": ["n"]}}
    schema = {"type": "object", "properties": {"rows": rows, "note": {"type": "string"}}}
    answer: dict[str, Any] = {
        "rows": [{"n": number} for number in range(20_000)],
        "note": "x" * 500_000,
    }

    assert faults_of(schema, answer) == []
    answer["rows"][-1] = {}
    assert faults_of(schema, answer) == [("rows", "19999/n: This is required.")]


def test_a_list_does_not_read_what_it_does_not_show(
    django_assert_max_num_queries: Any,
) -> None:
    ada = factories.ada()
    for number in range(3):
        factories.external_request(
            input={"bulk": "x" * 10_000, "number": number}, audience={"users": ["ada"]}
        )

    with CaptureQueriesContext(connection) as caught:
        found = queries.inbox(ada, "unclaimed")
        held = queries.open_for(ada)
    with django_assert_max_num_queries(0):
        assert [row.question_line for row in found.rows]

    assert len(held) == 3
    assert all({"input", "presentation"} <= row.get_deferred_fields() for row in held)
    read = [query["sql"].partition(" FROM ")[0] for query in caught.captured_queries]
    assert not [sql for sql in read if '"input"' in sql or '"params"' in sql]
