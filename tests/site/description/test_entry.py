"""What lets a caller in at each operation: an entry at all, and the one scope that a key needs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

import pytest
from django.test import Client
from django.utils import timezone

from gates.keys import create_key
from gates.models import ApiKey
from obversa_site.api_docs import described, example_of
from tests import factories
from tests.site.description.callers import Places

pytestmark = pytest.mark.django_db

# Which scope a key needs; whoever adds an operation says it here. With two, either is enough.
NEEDS: Final = {
    "start": {"askRequest", "startRun", "rerunRun"},
    "claim": {"claimRequest", "releaseRequest", "delegateRequest"},
    "claim operate": {"assignRequest"},
    "answer": {"submitRequest", "breakGlassRequest"},
    "answer operate": {"revokeGrant"},
    "operate": {"forceReleaseRequest", "withdrawRequest", "cancelRun", "resumeRun", "retryRun"},
    "read": {
        "listRequests", "getRequest", "getRequestHistory", "getRequestReceipt", "getReceiptKey",
        "listGrants", "listWorkflows", "listRuns", "getRun", "listEvents", "streamEvents",
        "getArtifact",
    },
}  # fmt: skip
SCOPES_OF: Final = {name: scopes.split() for scopes, names in NEEDS.items() for name in names}


def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Every operation by name: its method, its path and its description."""
    return {
        one["operationId"]: (method, path, one)
        for path, methods in described()["paths"].items()
        for method, one in methods.items()
    }


@pytest.fixture
def places() -> Places:
    return Places()


def call(name: str, places: Places, headers: dict[str, str]) -> Any:
    method, path, one = operations()[name]
    method = method.upper()
    noun = path.split("/")[3]
    key = places.ended if name in ("streamEvents", "getArtifact") else places.of.get(noun, [""])[0]
    path = path.replace("{id}", key).replace("{digest}", places.file)
    body: Any = None
    if "requestBody" in one:
        body = example_of(described(), one["requestBody"]["content"]["application/json"]["schema"])
        if name == "startRun":
            body = {"workflow": places.workflow}
    sent = json.dumps(body) if body else b""
    answer: Any = Client().generic(method, path, sent, "application/json", headers=headers)
    answer.getvalue()  # a download that is read to its end closes its file
    return answer


def test_every_operation_has_its_scope() -> None:
    assert set(SCOPES_OF) == set(operations())
    assert sum(len(names) for names in NEEDS.values()) == len(SCOPES_OF)
    assert {scope for scopes in SCOPES_OF.values() for scope in scopes} == set(ApiKey.SCOPES)


@pytest.mark.parametrize("name", sorted(SCOPES_OF))
def test_without_an_entry_that_works_nobody_is_let_in(places: Places, name: str) -> None:
    _, late = create_key("late", ApiKey.SCOPES)
    ApiKey.objects.filter(name="late").update(expires_at=timezone.now() - timedelta(seconds=1))
    _, gone = create_key("gone", ApiKey.SCOPES)
    ApiKey.objects.filter(name="gone").update(revoked_at=timezone.now())
    left = factories.user("left")
    _, lefts = create_key("lefts", ApiKey.SCOPES, left)
    left.is_active = False
    left.save()
    wrong = late[:-1] + ("A" if late[-1] != "A" else "B")

    for text in (None, "", "Bearer", "Basic YWRhOmFkYQ==", late, gone, lefts, wrong):
        sent = text if text is None or " " in text or len(text) < 10 else f"Bearer {text}"
        headers = {} if sent is None else {"Authorization": sent}
        assert call(name, places, headers).status_code == 401, sent


@pytest.mark.parametrize("name", sorted(SCOPES_OF))
def test_one_scope_is_needed_and_is_enough(places: Places, name: str) -> None:
    """A key of nobody in particular: whatever else refuses it, it is not its scope."""
    enough = SCOPES_OF[name]
    _, lacks = create_key("lacks", [scope for scope in ApiKey.SCOPES if scope not in enough])

    refused = call(name, places, {"Authorization": f"Bearer {lacks}"})

    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "scope"
    for scope in enough:
        _, has = create_key(f"has-{scope}", [scope])
        let_in = call(name, places, {"Authorization": f"Bearer {has}"})
        if let_in.status_code >= 400:
            # What a key without a person is not meant for, or what is not in a state for it.
            assert let_in.json()["error"]["code"] in (
                "forbidden", "not-claimed", "not-over", "not-paused", "not-retrying", "stale",
                "not-assignable", "not-answered", "not-found", "ended",
            ), let_in.json()  # fmt: skip
