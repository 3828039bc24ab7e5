"""Who calls the API at random, what there is to call it about, and how a made-up case is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.middleware.csrf import _get_new_csrf_string
from django.test import Client
from schemathesis.core.transport import Response

from gates import services
from gates.keys import create_key
from gates.models import ApiKey, Grant
from runs import fn_job
from tests import factories, flows

HOST: Final = "http://testserver"
# What a made-up case brings along to be let in; everybody here has an entry of their own.
_NOT_SENT: Final = frozenset({"authorization", "cookie", "x-csrftoken", "host", "content-length"})
_SESSIONS: Final[Mapping[str, Callable[[], User]]] = {
    "root": lambda: factories.user("root", is_superuser=True, is_staff=True),
    "operator": lambda: factories.user(
        "operator", perms=["runs.view_run", "gates.view_request", "gates.change_request"]
    ),
    "ada": lambda: factories.user("ada"),
    "cyd": lambda: factories.user("cyd"),
}
CALLERS: Final = (
    *(f"session of {name}" for name in _SESSIONS),
    *(f"key with {scope}" for scope in ApiKey.SCOPES),
    "key with everything",
    "key of ada",
    "key of cyd",
)
# These two reach everything there is.
MIGHTY: Final = ("session of root", "key with everything")


@dataclass
class Caller:
    """A client with what lets it in: a session and its CSRF token, or a key."""

    name: str
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def called(cls, name: str) -> Caller:
        """One of CALLERS."""
        made = cls(name)
        kind, _, what = name.split(" ", 2)
        if kind == "session":
            made.client.force_login(_SESSIONS[what]())
            token = _get_new_csrf_string()
            made.client.cookies[settings.CSRF_COOKIE_NAME] = token
            made.headers["X-CSRFToken"] = token
            return made
        owner = factories.user(what) if what in _SESSIONS else None
        scopes = [what] if what in ApiKey.SCOPES else ApiKey.SCOPES
        made.headers["Authorization"] = f"Bearer {create_key(f'made-{what}', scopes, owner)[1]}"
        return made

    def send(self, case: Any) -> Response:
        """Send the case as it goes over a wire; what comes back is judged by schemathesis."""
        told = case.as_transport_kwargs(base_url=HOST)
        told["cookies"] = {}
        request = requests.Request(**told).prepare()
        return self.forward(request)

    def forward(self, request: requests.PreparedRequest) -> Response:
        parts = urlsplit(str(request.url))
        told = {
            name.lower(): value.decode("latin-1") if isinstance(value, bytes) else value
            for name, value in request.headers.items()
        }
        own = {name: value for name, value in told.items() if name not in _NOT_SENT}
        body = request.body or b""
        answer: Any = self.client.generic(
            str(request.method),
            parts.path,
            body.encode() if isinstance(body, str) else body,
            content_type=own.pop("content-type", ""),
            QUERY_STRING=parts.query,
            headers={**own, **self.headers},
        )
        content = answer.getvalue()
        return Response(
            status_code=answer.status_code,
            headers={name.lower(): [value] for name, value in answer.headers.items()},
            content=content,
            request=request,
            elapsed=0.0,
            verify=True,
            message=answer.reason_phrase,
            encoding="utf-8",
        )


class Places:
    """What there is, so that ids made up lead somewhere: questions and runs in every state."""

    def __init__(self) -> None:
        asker = factories.key("asker")
        ada = factories.person("ada")
        pending = factories.external_request(audience={}, by=asker)
        held = factories.external_request(by=asker)
        services.claim(held.pk, principal=ada)
        answered = factories.external_request(by=asker)
        services.submit(
            answered.pk, principal=ada, token=None, digest=answered.digest,
            response={"approved": True},
        )  # fmt: skip
        step = factories.pending_gate(audience={})
        ended = flows.ran(
            fn_job("attach", lambda ctx: ctx.attach("a.txt", b"1") and None), name="files"
        )
        workflow = flows.offer(fn_job("f", lambda ctx: None), name="anybodys")
        grant = Grant.objects.create(
            id=uuid4(), run=step.run, scope="conversation", match_type="tool", match_value="t",
            conversation="c", principal=f"user:{factories.user('ada').pk}",
            granted_by=f"user:{factories.user('ada').pk}",
            source_request_id=step.request_id, granted_at=datetime.now(UTC),
        )  # fmt: skip
        self.digest = step.digest
        self.file = ended.artifacts.get().digest
        self.workflow = workflow
        self.ended = str(ended.pk)
        self.of = {
            "requests": [str(row.pk) for row in (pending, held, answered, step)],
            "runs": [str(row) for row in (step.run_id, pending.run_id, ended.pk)],
            "grants": [str(grant.pk)],
        }
