"""Of every answered request the record says who, when, what and from where (A15)."""

from __future__ import annotations

from typing import Any

import pytest

from gates.models import Request, Response
from runs import approval, fn_job
from runs.models import Event
from tests import factories, flows
from tests.acting import FIRST, ONCE, Downstream, calling, publish_post
from tests.gates.calls import Api, person, program
from tests.pages import client_of

pytestmark = pytest.mark.django_db
YES = {"approved": True}


def put(kind: str, **routing: Any) -> tuple[Request, dict[str, Any]]:
    """An open request of that kind for ada, and what answers it."""
    publish_post(Downstream(), audience=factories.FOR_ADA)
    audience = factories.FOR_ADA

    def asks(ctx: Any) -> str:
        return str(ctx.ask_questions(["Which?"], audience=audience))

    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "gate": (approval("ok", "Go on?", audience=audience, **routing), YES),
        "question": (fn_job("ask", asks), {"answer": "red"}),
        "approval": (calling(FIRST), ONCE),
    }
    job, response = ways[kind]
    run = flows.ran(job)
    return Request.objects.select_related("run").get(run=run), response


def on_the_page(row: Request, response: dict[str, Any]) -> None:
    sent = {f"f-{name}": str(value).lower() for name, value in response.items()}
    page = client_of(factories.ada())
    page.post(f"/gates/{row.pk}/claim/")
    told = page.post(f"/gates/{row.pk}/answer/", {"digest": row.digest, **sent})
    assert told.status_code == 302


def over_rest(row: Request, response: dict[str, Any]) -> None:
    submitted(person(factories.ada()), row, response)


def with_a_key(row: Request, response: dict[str, Any]) -> None:
    submitted(program("laptop", user=factories.ada().user), row, response)


def submitted(api: Api, row: Request, response: dict[str, Any]) -> None:
    body = {"digest": row.digest, "response": response}
    assert api.post(f"/requests/{row.pk}/submit", body).status_code == 200


@pytest.mark.parametrize(
    ("answer", "surface"), [(on_the_page, "browser"), (over_rest, "api"), (with_a_key, "api")]
)
@pytest.mark.parametrize("kind", ["gate", "question", "approval"])
def test_every_kind_answered_on_every_surface_is_told_whole(
    kind: str, answer: Any, surface: str
) -> None:
    row, response = put(kind)
    answer(row, response)
    who = "key:laptop" if answer is with_a_key else factories.ada().actor

    (event,) = Event.objects.filter(run=row.run, kind="callback-submitted")
    (given,) = Response.objects.filter(request=row)
    row.refresh_from_db()
    assert (event.actor, event.surface, event.payload["response"]) == (who, surface, response)
    assert (given.actor, given.surface, given.response) == (who, surface, response)
    assert row.answered_by == who
    assert row.answered_at == given.at == event.at

    told = person(factories.ada()).get(f"/requests/{row.pk}/history").json()["items"]
    (shown,) = [one for one in told if one["kind"] == "callback-submitted"]
    assert (shown["actor"], shown["surface"], shown["response"]) == (who, surface, response)
    assert shown["ts"]


def test_every_answer_of_several_is_told_and_every_refused_one_without_what_it_said() -> None:
    audience = {"users": ["ada", "eve"]}
    row = factories.pending_gate(needed=2, audience=audience)
    note = {**YES, "note": "only mine"}
    body = {"digest": row.digest, "response": note}
    ben, eve = factories.ben(), factories.person("eve")
    assert person(ben).post(f"/requests/{row.pk}/submit", body).status_code == 403
    over_rest(row, YES)
    submitted(person(eve), row, YES)

    events = Event.objects.filter(run=row.run_id, kind__startswith="callback-")
    given = [(one.actor, one.surface) for one in events.filter(kind="callback-responded")]
    assert given == [(factories.ada().actor, "api"), (eve.actor, "api")]
    (refused,) = events.filter(kind="callback-refused")
    assert (refused.actor, refused.surface) == (ben.actor, "api")
    assert "only mine" not in str(refused.payload)
