"""Sensitive values of a question: read by those who may, masked for everybody else, everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from gates.errors import DefinitionRefused
from gates.models import Request
from runs import fragments
from runs.kernel.errors import DeclarationError
from runs.kernel.gate import callback_request_digest
from runs.models import Run
from runs.shapes.approval import approval
from tests import factories, flows
from tests.gates.calls import code, person, program
from tests.pages import client_of

pytestmark = pytest.mark.django_db

SECRET = "s3cret-of-the-database"
ABOUT = {"host": "db1", "password": SECRET}
HINTS = {"sensitive": ["/password"]}


def asked(**more: Any) -> Request:
    return factories.pending_gate(input=ABOUT, presentation=HINTS, **more)


def test_whoever_may_answer_does_not_read_it_and_the_digest_is_that_of_the_true_value() -> None:
    row = asked()

    told = person(factories.ada()).get(f"/requests/{row.pk}").json()

    assert told["input"] == {"host": "db1", "password": "[masked]"}
    assert told["masked"] == ["/password"]
    assert (
        told["digest"]
        == row.digest
        == callback_request_digest(
            gate_id=row.gate_id,
            gate_version=1,
            decision_text=row.decision_text,
            response_schema=row.response_schema,
            input=ABOUT,
        )
    )


def test_the_permission_shows_it() -> None:
    row = asked()
    ada = factories.person("ada", perms=["gates.view_sensitive"])

    told = person(ada).get(f"/requests/{row.pk}").json()
    history = person(ada).get(f"/requests/{row.pk}/history").json()
    page = client_of(ada).get(row.get_absolute_url()).content.decode()

    assert (told["input"], told["masked"]) == (ABOUT, [])
    assert SECRET in json.dumps(history)
    assert SECRET in page


def test_no_surface_shows_it_without() -> None:
    run = factories.make_run(
        factories.release_job(input=ABOUT, presentation=HINTS), audience={"users": ["ada"]}
    )
    row = factories.pending_gate(run)
    ada, api = client_of(factories.ada()), person(factories.ada())
    run = Run.objects.get(pk=row.run_id)
    surfaces = {
        "page": ada.get(row.get_absolute_url()).content.decode(),
        "run page": ada.get(run.get_absolute_url()).content.decode(),
        "inbox": ada.get("/").content.decode(),
        "run's frame": fragments.frame(run, flows.events(run), {}),
        "list": json.dumps(api.get("/requests").json()),
        "history": json.dumps(api.get(f"/requests/{row.pk}/history").json()),
        "events": json.dumps(api.get(f"/runs/{run.pk}/events").json()),
        "run": json.dumps(api.get(f"/runs/{run.pk}").json()),
    }

    assert [name for name, text in surfaces.items() if SECRET in text] == []
    assert "[masked]" in surfaces["page"]
    assert "[masked]" in surfaces["events"]


def test_the_admin_shows_it_to_nobody() -> None:
    row = asked()
    root = factories.user("root")
    root.is_staff = root.is_superuser = True
    root.save()
    client = Client()
    client.force_login(root)
    event = row.run.events.get(kind="callback-requested")

    for path in (
        f"/admin/gates/request/{row.pk}/change/",
        f"/admin/runs/run/{row.run_id}/change/",
        f"/admin/runs/event/{event.pk}/change/",
    ):
        page = client.get(path).content.decode()
        assert SECRET not in page, path
        assert "[masked]" in page, path


def test_a_key_without_a_person_reads_it_masked_whatever_its_scopes() -> None:
    row = asked()

    told = program().get(f"/requests/{row.pk}").json()

    assert told["input"]["password"] == "[masked]"


def test_a_program_is_told_what_is_wrong_with_its_declaration() -> None:
    with pytest.raises(DefinitionRefused, match="JSON pointer"):
        factories.external_request(presentation={"sensitive": ["password"]})
    bot = program()
    wrong = {**DEFINITION, "presentation": {"sensitive": "x"}, "stream": "s"}
    refused = bot.post("/requests", wrong)
    assert code(refused) == (422, "definition")


def test_an_author_is_told_when_the_step_is_declared() -> None:
    with pytest.raises(DeclarationError, match="sensitive"):
        approval("a", "Go?", presentation={"sensitive": ["password"]})


DEFINITION = {
    "gateId": "g",
    "gateVersion": 1,
    "decisionText": "Go?",
    "responseSchema": {},
    "input": {},
}
