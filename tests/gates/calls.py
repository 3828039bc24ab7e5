"""Calls to the API, as one of three people or as a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.test import Client

from gates.keys import create_key
from runs.people.principals import Principal

ALL = ("read", "start", "claim", "answer", "operate")


# The question of the test vectors, as a program sends it.
DEFINITION: dict[str, Any] = {
    "gateId": "release-approval",
    "gateVersion": 1,
    "decisionText": "Approve release abc123?",
    "responseSchema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
    "input": {"revision": "abc123"},
}


class Api:
    """One caller of the API."""

    def __init__(self, client: Client, headers: dict[str, str] | None = None) -> None:
        self._client = client
        self._headers = headers or {}

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(f"/api/v1{path}", query, headers=self._headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._client.post(
            f"/api/v1{path}",
            {} if body is None else body,
            content_type="application/json",
            headers={**self._headers, **headers},
        )


def person(who: Principal) -> Api:
    """The signed-in person."""
    client = Client()
    assert who.user is not None
    client.force_login(who.user)
    return Api(client)


def program(name: str = "deploy-bot", scopes: Iterable[str] = ALL, user: Any = None) -> Api:
    """A program with a key of its own."""
    return Api(Client(), {"Authorization": f"Bearer {create_key(name, scopes, user)[1]}"})


def code(response: Any) -> tuple[int, str]:
    """The status and the code of a refusal."""
    return response.status_code, response.json()["error"]["code"]
