"""The world of the permission matrix: one question of a run, and who stands where to it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.contrib.auth.models import User

from gates import keys, services
from gates.models import ApiKey, Grant, Request
from gates.principals import Principal, principal_for_key
from runs import LoopError, fn_job, parallel, record
from runs import services as runs
from runs.artifacts import store
from runs.drivers.context import Context
from runs.kernel.events import EventKind
from runs.kernel.retries import RetryPolicy
from runs.models import Artifact, Run
from runs.shapes.job import Job
from tests import factories, flows

ROLES: Final = (
    "answerer", "looker", "outsider", "starter", "operator", "root", "agent", "visitor",
)  # fmt: skip
TEAM: Final = "Release"
# Whoever may start the workflow, and answer: a team, and the key of an agent.
AUDIENCE: Final = {"groups": [TEAM], "keys": ["agent"]}
PAGE: Final = b"<!doctype html><title>Report</title><p>Fine</p>"
_LOOKS: Final = ("runs.view_run", "gates.view_request")


def person(role: str) -> User | None:
    """Who is signed in as this role; an agent and a visitor are nobody."""
    match role:
        case "answerer":
            return factories.user("answerer", groups=[TEAM])
        case "looker":
            return factories.user("looker", perms=_LOOKS)
        case "operator":
            return factories.user("operator", perms=[*_LOOKS, "gates.change_request"])
        case "root":
            return factories.user("root", is_superuser=True, is_staff=True)
        case "outsider" | "starter":
            return factories.user(role)
    return None


def key_of(role: str) -> str:
    """The secret of a key with every scope: the role's own, and the agent's that is nobody's."""
    if role == "visitor":
        return ""
    return keys.create_key(role, ApiKey.SCOPES, person(role))[1]


@dataclass(frozen=True)
class World:
    """What the actions are about."""

    gate: Request
    file: str
    workflow: str
    grant: Grant

    @property
    def run(self) -> Run:
        return self.gate.run

    def facts(self) -> tuple[object, ...]:
        """What an action that is refused must leave as it was."""
        gate = Request.objects.get(pk=self.gate.pk)
        run = Run.objects.get(pk=self.run.pk)
        grant = Grant.objects.get(pk=self.grant.pk)
        return (
            gate.status, gate.holder, run.status, run.cancel_requested_at, run.wake_at,
            Run.objects.count(), grant.revoked_at,
        )  # fmt: skip


def world_for(action: str, *, by_key: bool = False, agent_starts: bool = False) -> World:
    """A question in the state the action is about; a key is another holder than its person."""
    job = _job(flaky=action == "retry")
    workflow = flows.offer(job, name="matrix", audience=AUDIENCE)
    starter = "key:agent" if agent_starts else f"user:{factories.user('starter').pk}"
    run = factories.make_run(job, started_by=starter, workflow=workflow)
    gate = factories.pending_gate(run)
    world = World(gate, _file(run), workflow, _grant(run, gate))
    match action:
        case "release" | "force-release" | "delegate":
            services.claim(gate.pk, principal=_holder(by_key=by_key))
        case "receipt":
            services.submit(
                gate.pk, principal=factories.person("answerer", groups=[TEAM]), token=None,
                digest=gate.digest, response={"approved": True},
            )  # fmt: skip
        case "resume" | "rerun" | "stream":
            # A stream goes on for as long as its run does.
            runs.cancel_run(run.pk, actor=starter)
        case "retry":
            flows.work(run)
    gate.refresh_from_db()
    return world


def _job(*, flaky: bool) -> Job:
    """Ask, and ship after the yes; beside that a step that waits for its next try."""
    release = factories.release_job(audience=AUDIENCE)
    if not flaky:
        return release
    retry = RetryPolicy(max_attempts=3, base_delay_ms=3_600_000, max_delay_ms=3_600_000)
    return parallel("both", {"release": release, "send": fn_job("send", _fails, retry=retry)})


def _fails(ctx: Context) -> str:
    raise LoopError("RATE_LIMIT", "later", phase="body")


def _holder(*, by_key: bool) -> Principal:
    """Who holds what is held: the answerer, or the answerer's key."""
    if by_key:
        return principal_for_key(ApiKey.objects.get(name="answerer"))
    return Principal.for_user(person("answerer"))


def _file(run: Run) -> str:
    digest, size = store.keep(PAGE)
    Artifact.objects.create(
        run=run, digest=digest, name="report.html", media_type="text/html", size=size,
        step_path=[], seq=run.last_seq, created_at=datetime.now(UTC),
    )  # fmt: skip
    return digest


def _grant(run: Run, gate: Request) -> Grant:
    """What the answerer allowed once for the conversation of the run."""
    facts = {
        "grantId": str(uuid.uuid4()), "scope": "conversation", "matchType": "tool",
        "matchValue": "publish", "conversation": "c", "sourceRequestId": gate.request_id,
        "grantedBy": f"user:{factories.user('answerer').pk}",
    }  # fmt: skip
    with record.turn(run.pk) as turn:
        turn.append(EventKind.GRANT_ISSUED, (), facts)
    return Grant.objects.get(run=run)


__all__ = ["ROLES", "TEAM", "World", "key_of", "person", "world_for"]
