"""Every address of the site, tried by those who have no business there.

A new route is denied by default, or one of these tests fails: it answers somebody it should not, or
its address needs a value that nobody has given here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.http import urlencode

from gates import keys
from gates.lists import saved
from gates.models import Delivery, Grant, Request
from runs import fn_job
from runs.artifacts import store
from runs.models import Artifact, Event, Run
from tests import factories, flows
from tests.gates.notify import ways

pytestmark = pytest.mark.django_db

# In every text of what belongs to ada: whoever reads it has seen something of hers.
MARK: Final = "xyzzy"
OPEN: Final = {"sign-in/", "sign-in/{person}/{token}/", "admin/login/", "healthz", "readyz"}
# What anybody who is signed in has: lists that hold what is theirs, and their own settings.
EVERYBODYS: Final = OPEN | {
    "",
    "runs/",
    "workflows/",
    "teams/",
    "bulk/",
    "bulk/answer/",
    "grants/",
    "api/v1/grants",
    "settings/",
    "settings/keys/",
    "settings/deputy/",
    "settings/quiet-hours/",
    "notifications/",
    "api/v1/docs",
    "api/v1/openapi.json",
    "api/v1/receipt-key",
    "api/v1/requests",
    "api/v1/runs",
    "api/v1/workflows",
}
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
METHODS: Final = ("get", "head", "post", "put", "patch", "delete", "options")


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


@pytest.fixture
def world() -> World:
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
            "person": "MQ",
            "token": "abc-0123456789",
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
        # Under /admin/ and in a link the name itself says what it is, elsewhere the part before.
        is_said = parts[0] in ("admin", "sign-in") or name == "rest"
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


def is_denied(status: int, location: str) -> bool:
    # The admin sends whoever signs out of it to its own first page, which sends on to the door.
    at_the_door = location.startswith(("/sign-in/", "/admin/login/")) or location == "/admin/"
    return status in (401, 403, 404, 405) or (status == 302 and at_the_door)


def test_the_walk_knows_every_route(world: World) -> None:
    found = addresses(world)

    assert len(found) > 90
    assert {route for route, _ in found} >= EVERYBODYS
    assert f"/runs/{world.gate.run_id}/cancel/" in [path for _, path in found]
    assert f"/api/v1/requests/{world.gate.pk}/submit" in [path for _, path in found]


@pytest.mark.parametrize("method", METHODS)
def test_nobody_gets_past_the_door(world: World, method: str) -> None:
    before, client = world.facts(), Client()
    answered = set()
    for route, path in addresses(world):
        status, location, body = ask(client, method, path, route)
        assert MARK not in body, path
        assert status < 500 or route == "readyz", path
        if not is_denied(status, location):
            answered.add(route)

    assert answered <= OPEN
    assert world.facts() == before


@pytest.mark.parametrize("method", METHODS)
def test_somebody_without_any_right_sees_only_what_is_everybodys(world: World, method: str) -> None:
    client = Client()
    client.force_login(factories.user("cyd"))
    before = world.facts()
    answered = set()
    for route, path in addresses(world):
        if route == "sign-out/":
            continue
        status, location, body = ask(client, method, path, route)
        # A refusal may name what its caller named.
        named = f"start-{MARK}" if method == "post" else ""
        assert MARK not in body.replace(named, ""), path
        assert status < 500 or route == "readyz", path
        if not is_denied(status, location):
            answered.add(route)

    assert answered <= EVERYBODYS
    assert world.facts() == before


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("owner", ["nobody", "cyd"])
def test_a_key_that_reads_opens_no_page_and_writes_nothing(
    world: World, method: str, owner: str
) -> None:
    user = None if owner == "nobody" else factories.user(owner)
    headers = {"Authorization": f"Bearer {keys.create_key('reader', ['read'], user)[1]}"}
    before, client = world.facts(), Client()
    answered = set()
    for route, path in addresses(world):
        if route.endswith("/stream") and user is None:
            continue  # it would answer until the run ends
        status, location, body = ask(client, method, path, route, headers=headers)
        assert user is None or MARK not in body, path
        assert status < 500 or route == "readyz", path
        if not is_denied(status, location):
            answered.add(route)

    pages = {route for route in answered if not route.startswith("api/v1/")}
    # A key of nobody in particular sees everything, so the counts of everything too.
    assert pages <= OPEN | ({"metrics"} if user is None else set())
    if method != "get":
        assert answered == pages
    assert world.facts() == before


def test_the_addresses_of_the_walk_do_lead_to_what_is_adas(world: World) -> None:
    client = Client()
    client.force_login(factories.user("ada"))
    shown = [
        path
        for route, path in addresses(world)
        if "{" in route and not route.endswith("/stream") and route not in OPEN
        if MARK in ask(client, "get", path)[2]
    ]

    for part in ("/gates/", "/runs/", "/teams/", "/workflows/", "/api/v1/requests/", "/artifacts/"):
        assert any(part in path for path in shown), part


def test_no_search_of_the_admin_leads_around_it() -> None:
    staff = factories.user("staff", is_staff=True)
    client = Client()
    client.force_login(staff)
    factories.pending_gate()
    query = {"app_label": "gates", "model_name": "response", "field_name": "request", "term": ""}

    assert client.get("/admin/autocomplete/?" + urlencode(query)).status_code == 403
    assert client.get("/admin/gates/request/?" + urlencode({"q": "release"})).status_code == 403
    assert "release" not in client.get("/admin/").content.decode().lower()
