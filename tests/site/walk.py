"""Every address of the site, and what is ada's behind them: for whoever walks them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from gates import keys
from gates.lists import saved
from gates.models import Delivery, Grant, Request
from runs import fn_job
from runs.artifacts import store
from runs.models import Artifact, Event, Run
from tests import factories, flows
from tests.gates.notify import ways

# In every text of what belongs to ada: whoever reads it has seen something of hers.
MARK: Final = "xyzzy"
# What a POST of the API has to say before anybody looks at its caller's rights.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "api/v1/runs": {"workflow": f"start-{MARK}"},
    "api/v1/requests/{requests}/submit": {"digest": "0" * 64, "response": {}},
    "api/v1/requests/{requests}/force-release": {"reason": "because"},
    "api/v1/requests/{requests}/withdraw": {"reason": "because"},
    "api/v1/requests/{requests}/assign": {"to": "cyd"},
    "api/v1/requests/{requests}/delegate": {"to": "cyd"},
    "api/v1/requests/{requests}/break-glass": {
        "digest": "0" * 64,
        "response": {},
        "reason": "because",
    },
    "api/v1/requests": {
        "gateId": "g",
        "gateVersion": 1,
        "decisionText": "t",
        "responseSchema": {},
        "input": None,
        "stream": "s",
    },
}


@dataclass(frozen=True)
class World:
    """What is ada's, and the values that lead to it."""

    gate: Request
    values: dict[str, object]

    def facts(self) -> tuple[object, ...]:
        gate, run = Request.objects.get(pk=self.gate.pk), Run.objects.get(pk=self.gate.run_id)
        seq = Event.objects.filter(run=run).count()
        return (
            gate.status,
            gate.holder,
            run.status,
            run.cancel_requested_at,
            seq,
            Run.objects.filter(kind="workflow").count(),
        )


def world_of_ada() -> World:
    ada = factories.user("ada", groups=[f"Release {MARK}"], first_name=MARK)
    ask = {"question": f"Approve {MARK}?", "input": {"revision": MARK}, "label": f"approve-{MARK}"}
    run = factories.make_run(
        factories.release_job(**ask),
        params={"version": MARK},
        started_by=f"user:{ada.pk}",
        workflow=f"release-{MARK}",
    )
    gate = factories.pending_gate(run)
    name = flows.offer(fn_job("f", str), name=f"start-{MARK}", audience=factories.FOR_ADA)
    digest, size = store.keep(MARK.encode())
    Artifact.objects.create(
        run=run, digest=digest, name=f"{MARK}.txt", media_type="text/plain", size=size,
        step_path=[], seq=run.last_seq, created_at=datetime.now(UTC),
    )  # fmt: skip
    step = run.steps.exclude(request_id="").get()
    key, _ = keys.create_key(f"key-{MARK}", ["read"], ada)
    named = saved.save_filter(ada.pk, "inbox", MARK, f"q={MARK}")
    granted = Grant.objects.create(
        id=uuid4(), run=run, scope="conversation", match_type="tool", match_value=MARK[:60],
        conversation=MARK, principal=f"user:{ada.pk}", granted_by=f"user:{ada.pk}",
        source_request_id=gate.request_id, granted_at=datetime.now(UTC),
    )  # fmt: skip
    told = ways.service_of("ada", name=MARK)
    sent = Delivery.objects.create(
        channel=told, run=run, request=gate, kind="gate.requested", key=MARK, state="failed",
        error=MARK, next_at=told.created_at, created_at=told.created_at, done_at=told.created_at,
    )  # fmt: skip
    return World(
        gate,
        {
            "gates": gate.pk,
            "requests": gate.pk,
            "questions": gate.digest,
            "runs": run.pk,
            "steps": step.position,
            "artifacts": digest,
            "evidence": digest,
            "files": 0,
            "workflows": name,
            "teams": ada.groups.get().pk,
            "keys": key.pk,
            "filters": named.pk,
            "grants": granted.pk,
            "channels": told.pk,
            "add": "webhook",
            "notifications": sent.uid,
            "messages": sent.uid,
            "rest": "nothing/here",
            "object_id": gate.pk,
            "content_type_id": 1,
            "id": ada.pk,
            "app_label": "gates",
            "url": "nothing/here/",
        },
    )


def routes(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every address of the site as `runs/{runs}/cancel/`, with the names it needs."""
    for pattern in resolver.url_patterns:
        own = str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, before + own)
            continue
        assert isinstance(pattern, URLPattern)
        own = own.replace("^(?P<app_label>auth|runs|gates)/$", "<app_label>/")
        yield from _named(before + own.replace("(?P<url>.*)$", "<url>"))


def _named(route: str) -> Iterator[tuple[str, list[str]]]:
    parts, names = [], []
    for part in route.split("/"):
        if not part.startswith("<"):
            parts.append(part)
            continue
        name = part.strip("<>").rpartition(":")[2]
        # Under /admin/ the name itself says what it is, elsewhere the part before.
        is_said = parts[0] == "admin" or name == "rest"
        names.append(name if is_said else parts[-1])
        parts.append(f"{{{names[-1]}}}")
    yield "/".join(parts), names


def addresses(world: World) -> list[tuple[str, str]]:
    """Each route with an address that leads to what is ada's."""
    found = dict(routes(get_resolver()))
    return [
        (route, "/" + route.format(**{name: world.values[name] for name in names}))
        for route, names in found.items()
    ]


def ask(
    client: Client, method: str, path: str, route: str = "", **extra: Any
) -> tuple[int, str, str]:
    if method == "post" and route.startswith("api/"):
        extra |= {"data": BODIES.get(route, {}), "content_type": "application/json"}
    response = getattr(client, method)(path, **extra)
    body = response.getvalue() if hasattr(response, "getvalue") else b""
    return response.status_code, response.headers.get("Location", ""), body.decode(errors="replace")
