"""Builders with good defaults: people, keys, runs and questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, Permission, User

from gates import services
from gates.models import ApiKey, Request
from gates.principals import Principal, principal_for_key
from runs import approval, dag, fn_job, record
from runs.kernel.events import EventKind
from runs.kernel.graph import leaf_count, shape_identity
from runs.kernel.jsonable import digest_hex
from runs.models import Definition, Event, Run
from runs.people.audiences import audience_for
from runs.shapes.job import Job

APPROVAL: dict[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
    "required": ["approved"],
}
FOR_ADA: dict[str, Any] = {"users": ["ada"]}
_numbers = count(1)


def user(
    name: str = "", *, groups: Iterable[str] = (), perms: Iterable[str] = (), **facts: Any
) -> User:
    """A person; `groups` by name, `perms` as `app.codename`."""
    name = name or f"person-{next(_numbers)}"
    made, _ = User.objects.get_or_create(username=name, defaults=facts)
    for group in groups:
        made.groups.add(Group.objects.get_or_create(name=group)[0])
    for perm in perms:
        app, codename = perm.split(".")
        made.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return User.objects.get(pk=made.pk)


def ada() -> Principal:
    """May answer what is asked of her."""
    return person("ada")


def ben() -> Principal:
    """May look at everything and answer nothing."""
    return person("ben", perms=["runs.view_run", "gates.view_request"])


def cyd() -> Principal:
    """Has no business here."""
    return person("cyd")


def operator() -> Principal:
    """May look at everything, and rescue."""
    return person("oda", perms=["runs.view_run", "gates.view_request", "gates.change_request"])


def person(name: str, surface: str = "browser", **rights: Any) -> Principal:
    return Principal.for_user(user(name, **rights), surface)


def key(
    name: str = "bot", scopes: Iterable[str] = ("read", "start", "claim", "answer"), **facts: Any
) -> Principal:
    """A key as a caller."""
    found = ApiKey.objects.filter(name=name).first()
    if found is None:
        prefix = f"{next(_numbers):012x}"
        found = ApiKey.objects.create(
            name=name, prefix=prefix, hash="0" * 64, scopes=list(scopes), **facts
        )
    return principal_for_key(found)


def release_job(**ask: Any) -> Job:
    """Ask ada, then ship; nothing needs a worker before the question is out."""
    given = {"audience": FOR_ADA, "input": {"revision": "abc123"}} | ask
    label = given.pop("label", "approve")
    question = given.pop("question", "Approve release abc123?")
    return dag(
        "release",
        {
            "approve": {"job": approval(label, question, **given)},
            "ship": {"job": fn_job("ship", lambda ctx: "shipped"), "needs": ["approve"]},
        },
    )


def make_run(
    job: Job | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    audience: Mapping[str, Any] | None = None,
    started_by: str = "user:0",
    workflow: str = "release",
) -> Run:
    """A run that has taken its first turn; without an audience nobody but the starter sees it."""
    shape = (job or release_job()).shape
    wire = shape.to_json()
    definition, _ = Definition.objects.get_or_create(
        digest=digest_hex(wire), defaults={"identity": shape_identity(shape), "shape": wire}
    )
    run = Run(
        workflow=workflow,
        title=workflow.capitalize(),
        definition=definition,
        audience=audience_for(audience or {"users": ["nobody"]}),
        params=dict(params or {}),
        started_by=started_by,
        total_count=leaf_count(shape),
    )
    with record.first_turn(run, actor=started_by, surface="browser") as turn:
        facts = {"runId": str(run.pk), "session": 1, "params": dict(params or {})}
        turn.append(EventKind.RUN_START, (), facts)
    return run


def pending_gate(run: Run | None = None, **ask: Any) -> Request:
    """An approval that waits for ada, in a run of its own."""
    run = run or make_run(release_job(**ask))
    return Request.objects.select_related("run").get(run=run, status=Request.Status.PENDING)


def external_request(
    *,
    gate_id: str = "release-approval",
    stream: str = "",
    by: Principal | None = None,
    schema: Mapping[str, Any] | None = None,
    audience: Mapping[str, Any] | None = None,
    input: Any = None,
    text: str = "Approve release abc123?",
    presentation: Mapping[str, Any] | None = None,
    **routing: Any,
) -> Request:
    """A question an outside program asked, for ada unless said otherwise."""
    definition = {
        "gateId": gate_id,
        "gateVersion": 1,
        "decisionText": text,
        "responseSchema": schema if schema is not None else APPROVAL,
        "input": {"revision": "abc123"} if input is None else input,
        "presentation": presentation or {},
    }
    row, _ = services.post_request(
        definition,
        principal=by or key(),
        stream=stream or f"stream-{next(_numbers)}",
        routing={"audience": FOR_ADA if audience is None else audience, **routing},
    )
    return row


def event_kinds(run: Run, *, prefix: str = "callback-") -> list[str]:
    """The kinds of the run's events that begin so, in order."""
    kinds = Event.objects.filter(run=run).order_by("seq").values_list("kind", flat=True)
    return [kind for kind in kinds if kind.startswith(prefix)]
