from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gates import services
from gates.access import Forbidden
from gates.errors import DefinitionRefused, SchemaRefused
from gates.models import Request
from runs.kernel.jsonable import JsonValueError
from runs.models import Run
from tests import factories
from tests.gates.calls import DEFINITION

pytestmark = pytest.mark.django_db
DIGEST = "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"


def ask(
    changes: dict[str, Any] | None = None, stream: str = "s", **routing: Any
) -> tuple[Request, bool]:
    return services.post_request(
        DEFINITION | (changes or {}), principal=factories.key(), stream=stream, routing=routing
    )


def test_the_same_question_again_is_the_same_row_and_records_nothing() -> None:
    first, created = ask()
    seq = Run.objects.get(pk=first.run_id).last_seq

    again, created_again = ask({"presentation": {"theme": "dark"}})

    assert (created, created_again) == (True, False)
    assert (again.pk, again.digest, again.presentation) == (first.pk, DIGEST, {})
    assert Run.objects.get(pk=first.run_id).last_seq == seq


def test_a_new_version_supersedes_the_open_one() -> None:
    old, _ = ask()

    new, created = ask({"gateVersion": 2})

    old.refresh_from_db()
    assert created
    assert (old.status, old.superseded_by) == ("superseded", new.request_id)


def test_gates_of_two_streams_know_nothing_of_each_other() -> None:
    first, _ = ask(stream="a")
    second, _ = ask(stream="b")

    assert first.pk != second.pk
    assert {first.status, second.status} == {"pending"}
    assert Run.objects.filter(kind="external").count() == 2


def test_a_stream_belongs_to_whoever_opened_it() -> None:
    ask(stream="mine")

    with pytest.raises(Forbidden, match="belongs to somebody else"):
        services.post_request(DEFINITION, principal=factories.key("other"), stream="mine")


def test_asking_needs_the_scope_for_it() -> None:
    reader = factories.key("reader", ["read", "answer"])

    with pytest.raises(Forbidden):
        services.post_request(DEFINITION, principal=reader, stream="s")

    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gateId": ""}, "gateId"),
        ({"gateId": 7}, "gateId"),
        ({"gateId": "x" * 501}, "gateId"),
        ({"gateVersion": True}, "gateVersion"),
        ({"gateVersion": 0}, "gateVersion"),
        ({"gateVersion": "1"}, "gateVersion"),
        ({"decisionText": ""}, "decisionText"),
        ({"presentation": []}, "presentation"),
    ],
)
def test_a_definition_is_refused_with_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(DefinitionRefused) as refusal:
        ask(changes)

    assert refusal.value.field == field
    assert not Request.objects.exists()


def test_a_missing_field_is_named() -> None:
    given = {name: value for name, value in DEFINITION.items() if name != "input"}

    with pytest.raises(DefinitionRefused) as refusal:
        services.post_request(given, principal=factories.key(), stream="s")

    assert refusal.value.field == "input"


@pytest.mark.parametrize(
    "schema",
    [
        [],
        "object",
        {"properties": []},
        {"required": "approved"},
        {"properties": {"a": {"type": "string", "pattern": "("}}},
        {"properties": {"a": {"type": "string", "pattern": "(a)\\1"}}},
        {"properties": {"a": {"properties": {"b": {"pattern": "(?=x)"}}}}},
        {"properties": {"a": {"minimum": "3"}}},
        {"properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"unevaluatedProperties": False},
    ],
)
def test_a_schema_that_cannot_be_checked_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaRefused) as refusal:
        ask({"responseSchema": schema})

    assert refusal.value.field == "responseSchema"
    assert not Request.objects.exists()


@pytest.mark.parametrize("value", [float("nan"), 2**53 + 1, 10**400, "\ud800", {1: 2}, object()])
def test_an_input_that_is_not_json_raises_and_opens_no_stream(value: Any) -> None:
    with pytest.raises(JsonValueError):
        ask({"input": {"n": value}})

    assert not Run.objects.exists()


def test_the_deepest_input_is_kept_and_one_deeper_is_not() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels):
            value = {"a": value}
        return value

    assert ask({"input": nested(250)})[1]
    with pytest.raises(JsonValueError):
        ask({"input": nested(251)}, stream="other")


@pytest.mark.parametrize(
    ("routing", "field"),
    [
        ({"priority": 1.5}, "priority"),
        ({"priority": True}, "priority"),
        ({"priority": 10**9}, "priority"),
        ({"dueAt": "tomorrow"}, "dueAt"),
        ({"dueAt": "2031-01-01T00:00:00"}, "dueAt"),
        ({"dueAt": 7}, "dueAt"),
        ({"dueAt": "2031-02-30T00:00:00Z"}, "dueAt"),
        ({"dueAt": "2031-01-01T00:00:60.000Z"}, "dueAt"),
        ({"expiresAt": "2001-01-01T00:00:00Z"}, "expiresAt"),
        ({"audience": {"users": "ada"}}, "audience"),
        ({"audience": {"planets": ["mars"]}}, "audience"),
        ({"audience": ["ada"]}, "audience"),
        ({"kind": "approval"}, "kind"),
        ({"holder": "user:1"}, "holder"),
    ],
)
def test_routing_is_refused_with_its_field(routing: dict[str, Any], field: str) -> None:
    with pytest.raises(DefinitionRefused) as refusal:
        ask(**routing)

    assert refusal.value.field == field


@pytest.mark.parametrize("stream", ["", "  ", "x" * 201, "a\0b"])
def test_a_stream_has_a_name(stream: str) -> None:
    with pytest.raises(DefinitionRefused) as refusal:
        ask(stream=stream)

    assert refusal.value.field == "stream"


def test_times_and_priority_reach_the_row() -> None:
    due = timezone.now() + timedelta(hours=3)

    row, _ = ask(dueAt=due.isoformat(), priority=-3)

    assert row.due_at is not None
    assert abs(row.due_at - due) < timedelta(milliseconds=1)
    assert (row.priority, row.due_order) == (-3, row.due_at)


@pytest.mark.parametrize("gate_id", ["a#b", "#", "ünï/…?x=1", "a\0b", "x" * 500])
def test_any_gate_id_is_asked_and_answered(gate_id: str) -> None:
    row, _ = ask({"gateId": gate_id}, audience=factories.FOR_ADA)

    receipt = services.submit(
        row.pk,
        principal=factories.ada(),
        token=None,
        digest=row.digest,
        response={"approved": True},
    )

    assert receipt.next == "recorded"
