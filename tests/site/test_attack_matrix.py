"""What each kind of key opens, and what each kind of staff may do in the admin.

`+` it happens, `-` it is forbidden, `0` it is not there (404), `?` the door (sign in, 401). The
table of all actions, surfaces and roles is tests/site/matrix/test_permissions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gates import keys, services
from gates.models import ApiKey, Request
from gates.principals import Principal, principal_for_key
from runs import fn_job
from runs import services as runs
from runs.artifacts import store
from runs.models import Artifact, Run
from tests import factories, flows

KEYS: Final = ["bot", "bots-only", "reader", "adas", "cyds", "revoked", "expired", "left"]
BY_KEYS: Final = {
    "see":           "+    +          +       +     0     ?        ?        ?",
    "claim":         "-    +          -       +     0     ?        ?        ?",
    "release":       "-    +          -       +     0     ?        ?        ?",
    "submit":        "-    +          -       +     0     ?        ?        ?",
    "force-release": "+    +          -       -     0     ?        ?        ?",
    "withdraw":      "+    +          -       -     0     ?        ?        ?",
    "assign":        "+    +          -       +     0     ?        ?        ?",
    "delegate":      "-    +          -       +     0     ?        ?        ?",
    "break-glass":   "-    -          -       -     0     ?        ?        ?",
    "start":         "+    +          -       +     0     ?        ?        ?",
    "cancel":        "+    +          -       -     0     ?        ?        ?",
    "resume":        "+    +          -       -     0     ?        ?        ?",
    "download":      "+    +          +       +     0     ?        ?        ?",
}  # fmt: skip
ACTIONS: Final = tuple(BY_KEYS)
ALL: Final = ApiKey.SCOPES


def row(table: dict[str, str], roles: list[str], action: str) -> dict[str, str]:
    return dict(zip(roles, table[action].split(), strict=True))


@dataclass
class World:
    """A question for ada and a key, in a run that `starter` started; and a workflow for both."""

    gate: Request
    digest: str
    workflow: str

    @property
    def run(self) -> Run:
        return self.gate.run

    def facts(self) -> tuple[object, ...]:
        gate, run = Request.objects.get(pk=self.gate.pk), Run.objects.get(pk=self.run.pk)
        return gate.status, gate.holder, run.status, run.cancel_requested_at, Run.objects.count()


def world_for(action: str, holder: Principal | None) -> World:
    audience = {"users": ["ada", "dora"], "keys": ["bots-only"]}
    factories.user("dora")
    run = factories.make_run(
        factories.release_job(audience=audience),
        started_by=f"user:{factories.user('starter').pk}",
    )
    gate = factories.pending_gate(run)
    digest, size = store.keep(b"x")
    Artifact.objects.create(
        run=run, digest=digest, name="x.txt", media_type="text/plain", size=size,
        step_path=[], seq=run.last_seq, created_at=datetime.now(UTC),
    )  # fmt: skip
    if action in ("release", "force-release", "delegate"):
        services.claim(gate.pk, principal=holder or factories.ada())
    if action == "resume":
        runs.cancel_run(run.pk, actor=run.started_by)
    gate.refresh_from_db()
    return World(gate, digest, flows.offer(fn_job("f", str), name="matrix", audience=audience))


def key(role: str) -> tuple[ApiKey, str]:
    owner = {"adas": "ada", "cyds": "cyd", "left": "lea"}.get(role)
    scopes = ["read"] if role == "reader" else ALL
    made, text = keys.create_key(role, scopes, factories.user(owner) if owner else None)
    if role == "revoked":
        keys.revoke(made)
    if role == "expired":
        past = datetime.now(UTC) - timedelta(seconds=1)
        ApiKey.objects.filter(pk=made.pk).update(expires_at=past)
    if role == "left":
        User.objects.filter(username="lea").update(is_active=False)
    return made, text


def by_api(client: Client, world: World, action: str, **headers: str) -> Any:
    gate, run = f"/api/v1/requests/{world.gate.pk}", f"/api/v1/runs/{world.run.pk}"
    body: dict[str, Any] = {}
    match action:
        case "see":
            return client.get(gate, headers=headers)
        case "download":
            return client.get(f"{run}/artifacts/{world.digest}", headers=headers)
        case "submit":
            body = {"digest": world.gate.digest, "response": {"approved": True}}
        case "force-release" | "withdraw":
            body = {"reason": "because"}
        case "assign" | "delegate":
            body = {"to": "dora"}
        case "break-glass":
            body = {"digest": world.gate.digest, "response": {"approved": True}, "reason": "fire"}
        case "start":
            body = {"workflow": world.workflow}
    address = {"start": "/api/v1/runs", "cancel": f"{run}/cancel", "resume": f"{run}/resume"}
    path = address.get(action, f"{gate}/{action}")
    return client.post(path, body, content_type="application/json", headers=headers)


def mark(response: Any) -> str:
    location = response.headers.get("Location", "")
    response.getvalue()  # a download that is read to its end closes its file
    if response.status_code == 401 or location.startswith(("/sign-in/", "/admin/login/")):
        return "?"
    known = {200: "+", 201: "+", 302: "+", 403: "-", 404: "0"}
    return known.get(response.status_code, f"{response.status_code}")


def tried(
    action: str, expected: dict[str, str], attempt: Callable[[World, str], Any], holder: Any
) -> dict[str, str]:
    """What each role got; only where it is to happen does the world change."""
    found, shared = {}, world_for(action, None)
    for role, wanted in expected.items():
        world = world_for(action, holder(role)) if wanted == "+" else shared
        before = world.facts()
        found[role] = mark(attempt(world, role))
        if action not in ("see", "download"):
            assert (world.facts() != before) == (found[role] == "+"), (action, role)
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("action", ACTIONS)
def test_keys(action: str) -> None:
    expected = row(BY_KEYS, KEYS, action)
    made = {role: key(role) for role in KEYS}

    def attempt(world: World, role: str) -> Any:
        return by_api(Client(), world, action, Authorization=f"Bearer {made[role][1]}")

    def holder(role: str) -> Principal | None:
        is_own = action in ("release", "delegate")
        return principal_for_key(made[role][0]) if is_own else None

    assert tried(action, expected, attempt, holder) == expected


ADMIN: Final = ["nobody", "cyd", "staff", "looker", "rescuer", "root"]
BY_ADMIN: Final = {
    "see":           "?     ?    -      +       +        +",
    "force-release": "?     ?    -      -       +        +",
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("action", BY_ADMIN)
def test_the_admin(action: str) -> None:
    looks = ["gates.view_request", "runs.view_run"]
    people = {
        "nobody": None,
        "cyd": factories.user("cyd"),
        "staff": factories.user("staff", is_staff=True),
        "looker": factories.user("looker", is_staff=True, perms=looks),
        "rescuer": factories.user("rescuer", is_staff=True, perms=[*looks, "gates.change_request"]),
        "root": factories.user("root", is_superuser=True, is_staff=True),
    }
    expected = row(BY_ADMIN, ADMIN, action)
    found = {}
    for role, user in people.items():
        world, client = world_for("force-release", None), Client()
        if user is not None:
            client.force_login(user)
        if action == "see":
            found[role] = mark(client.get(f"/admin/gates/request/{world.gate.pk}/change/"))
            continue
        chosen = {"action": "force_release", "_selected_action": str(world.gate.pk)}
        asked = {"confirmed": "yes", "reason": "because"}
        answer = mark(client.post("/admin/gates/request/", chosen | asked))
        world.gate.refresh_from_db()
        # The admin answers an act that somebody may not choose with the same list again.
        freed = world.gate.status == Request.Status.PENDING
        found[role] = answer if answer != "+" else "+" if freed else "-"

    assert found == expected
