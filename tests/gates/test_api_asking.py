from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gates.models import Request
from runs.kernel.gate import callback_request_digest, create_callback_gate
from runs.kernel.jsonable import parse_json
from runs.models import Run
from tests import factories
from tests.gates.calls import DEFINITION, Api, code, person, program
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def bot() -> Api:
    return program("release-bot")


def ask(bot: Api, stream: str = "s", **changes: Any) -> Any:
    return bot.post("/requests", {**DEFINITION, "stream": stream, **changes})


def test_a_new_question_is_201_and_the_same_one_again_200(bot: Api) -> None:
    first = ask(bot, audience=factories.FOR_ADA)
    again = ask(bot, audience=factories.FOR_ADA)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert Request.objects.count() == 1
    assert factories.event_kinds(Run.objects.get()).count("callback-requested") == 1


def test_a_question_has_the_shape_that_programs_rely_on(bot: Api) -> None:
    told = ask(
        bot,
        presentation={"theme": "dark"},
        audience={"groups": ["Release"]},
        dueAt="2126-01-01T12:00:00+02:00",
        expiresAt="2126-01-02T00:00:00Z",
        priority=5,
    ).json()

    digest = callback_request_digest(DEFINITION)
    assert digest == "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"
    url, created = told.pop("url"), told.pop("createdAt")
    assert url.startswith("http")
    assert url.endswith(f"/{told['id']}/")
    assert TIME.fullmatch(created)
    row = Request.objects.get(pk=told.pop("id"))
    assert told == {
        **DEFINITION,
        "requestId": f"release-approval#1#{digest}",
        "digest": digest,
        "presentation": {"theme": "dark"},
        "kind": "gate",
        "status": "pending",
        "runId": str(row.run_id),
        "stepPath": [],
        "stream": "s",
        "audience": {"groups": ["Release"]},
        "holder": None,
        "claimedAt": None,
        "priority": 5,
        "dueAt": "2126-01-01T10:00:00.000Z",
        "expiresAt": "2126-01-02T00:00:00.000Z",
        "onExpiry": "reject",
        "defaultAnswer": None,
        "onAnswer": "resume",
        "needed": 1,
        "responses": [],
        "masked": [],
        "router": None,
        "action": None,
        "excludeRequester": False,
        "how": None,
        "onePerTeam": False,
        "override": None,
        "risk": None,
        "askedBy": "key:release-bot",
        "supersededBy": None,
        "closedReason": None,
        "answeredAt": None,
        "answeredBy": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        "1e-5",
        "1.0",
        "-0",
        "9007199254740991",
        "9007199254740992",
        "1e22",
        "44030096935539630",
        '"é"',
        '"e\u0301"',
        '"\\u0000"',
        '{"b":1,"a":[1e21,0.000001,1e-7]}',
        "null",
        '"\u2028 \U0001f680"',
    ],
)
def test_a_digest_made_from_the_wire_is_the_digest(bot: Api, text: str) -> None:
    body = json.dumps({**DEFINITION, "stream": "s", "input": "HERE"}).replace('"HERE"', text)
    made = bot._client.post(
        "/api/v1/requests", body, content_type="application/json", headers=bot._headers
    )
    assert made.status_code == 201

    shown = bot.get(f"/requests/{made.json()['id']}").json()

    fields = [*DEFINITION, "presentation"]
    again = create_callback_gate({name: shown[name] for name in fields})
    assert (again.digest, again.request_id) == (shown["digest"], shown["requestId"])
    assert again.digest == callback_request_digest({**DEFINITION, "input": parse_json(text)})


@pytest.mark.parametrize("gate_id", ["x" * 480 + "#é", "a#b", "a\0b", "\ufffd"])
def test_a_gate_id_that_its_column_cannot_hold_goes_out_whole(bot: Api, gate_id: str) -> None:
    told = ask(bot, gateId=gate_id).json()

    assert told["gateId"] == gate_id
    assert told["requestId"] == f"{gate_id}#1#{told['digest']}"
    found = bot.get("/requests", requestId=told["requestId"]) if "\0" not in gate_id else None
    if found is not None:
        assert [row["id"] for row in found.json()["items"]] == [told["id"]]


@pytest.mark.parametrize(
    "number",
    ["NaN", "1e400", "9007199254740993", "1" * 401, "9" * 5000],
    ids=lambda text: text[:20],
)
def test_a_number_that_json_does_not_hold_is_400_and_leaves_nothing(bot: Api, number: str) -> None:
    asked = json.dumps({**DEFINITION, "stream": "s", "input": {"n": 0}})
    refused = bot.post("/requests", asked.replace('{"n": 0}', f'{{"n": {number}}}'))

    assert code(refused) == (400, "INVALID_JSON_VALUE")
    assert refused.json()["error"]["details"]["path"] in ("/input/n", "")
    assert not Run.objects.exists()

    row = factories.external_request(schema={})
    kinds = factories.event_kinds(row.run, prefix="")
    body = f'{{"digest": "{row.digest}", "response": {{"n": {number}}}}}'
    assert code(person(factories.ada()).post(f"/requests/{row.pk}/submit", body))[0] == 400
    assert factories.event_kinds(row.run, prefix="") == kinds


@pytest.mark.parametrize("gate_id", ["a#b", "#", "ünï/…?x=1", "../%2e%2e/", "a b\n"])
def test_any_gate_id_leads_to_its_page_and_is_answered_there(bot: Api, gate_id: str) -> None:
    told = ask(bot, gateId=gate_id, audience=factories.FOR_ADA).json()
    ada = client_of(factories.ada())
    address = told["url"].partition("://")[2]
    path = address[address.index("/") :]

    assert "Approve release abc123?" in page_of(ada.get(path)).one("main").text
    ada.post(f"{path}claim/")
    sent = {"digest": told["digest"], "f-approved": "true"}
    assert ada.post(f"{path}answer/", sent).status_code == 302
    (answered,) = bot.get("/requests", requestId=told["requestId"]).json()["items"]
    assert (answered["status"], answered["gateId"]) == ("answered", gate_id)


def test_a_changed_question_takes_the_place_of_the_open_one(bot: Api) -> None:
    old = ask(bot).json()
    new = ask(bot, input={"revision": "def456"}).json()

    shown = bot.get(f"/requests/{old['id']}").json()
    assert (shown["status"], shown["supersededBy"]) == ("superseded", new["requestId"])
    refused = bot.post(f"/requests/{old['id']}/claim")
    assert code(refused) == (409, "superseded")
    assert refused.json()["error"]["details"]["id"] == new["id"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gateId", ""),
        ("gateId", 7),
        ("gateVersion", 0),
        ("gateVersion", True),
        ("gateVersion", "1"),
        ("gateVersion", 1.5),
        ("gateVersion", 2**53),
        ("decisionText", ""),
        ("responseSchema", []),
        ("responseSchema", {"properties": []}),
        ("responseSchema", {"type": "nothing"}),
        ("responseSchema", {"$ref": "https://example.com/schema"}),
        ("presentation", []),
        ("stream", ""),
        ("stream", "a\0b"),
        ("stream", "x" * 201),
        ("audience", {"users": "ada"}),
        ("audience", {"people": ["ada"]}),
        ("audience", ["ada"]),
        ("dueAt", "tomorrow"),
        ("dueAt", "2126-01-01T00:00:00"),
        ("expiresAt", "2001-01-01T00:00:00Z"),
        ("priority", 1001),
        ("priority", "high"),
        ("kind", "approval"),
        ("digest", "0" * 64),
        ("requestId", "other#1#" + "0" * 64),
        ("tenant", "acme"),
    ],
)
def test_a_question_that_cannot_be_asked_names_its_field(bot: Api, field: str, value: Any) -> None:
    refused = ask(bot, **{field: value})

    assert refused.status_code == 422
    assert refused.json()["error"]["field"].split(".")[0] == field
    assert Request.objects.count() == 0


@pytest.mark.parametrize("field", [*DEFINITION, "stream"])
def test_a_question_without_a_field_names_it(bot: Api, field: str) -> None:
    body = {**DEFINITION, "stream": "s"}
    del body[field]

    refused = bot.post("/requests", body)

    assert code(refused) == (422, "validation")
    assert refused.json()["error"]["field"] == field


def test_the_wire_form_of_a_request_may_be_posted_as_it_is(bot: Api) -> None:
    wire = json.loads(json.dumps(create_callback_gate(DEFINITION).to_wire()))

    assert bot.post("/requests", {**wire, "stream": "s"}).status_code == 201


def test_a_stream_belongs_to_whoever_asked_in_it_first(bot: Api) -> None:
    ask(bot)

    assert code(ask(program("other", ["read", "start"]))) == (403, "forbidden")
    assert Request.objects.count() == 1


# Finding questions


def test_lists_go_page_by_page_and_miss_nothing(bot: Api) -> None:
    made = [ask(bot, f"s{n}", priority=n % 3).json()["id"] for n in range(7)]
    seen: list[str] = []
    cursor = ""

    while True:
        page = bot.get("/requests", limit=3, **({"cursor": cursor} if cursor else {})).json()
        assert set(page) == {"items", "next"}
        seen += [row["id"] for row in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break

    assert sorted(seen) == sorted(made)
    assert [made.index(key) % 3 for key in seen] == [2, 2, 1, 1, 0, 0, 0]


def test_filters_narrow_the_list() -> None:
    bot = program("release-bot")
    ada = person(factories.ada())
    fors = ask(bot, "for-ada", audience=factories.FOR_ADA).json()
    group = ask(bot, "group", audience={"groups": ["Release"]}, gateId="other").json()
    asked = ask(bot, "q", kind="question", audience={"users": ["ben"]}).json()

    def found(caller: Api, **query: Any) -> list[str]:
        return sorted(row["id"] for row in caller.get("/requests", **query).json()["items"])

    everything = sorted(row["id"] for row in (fors, group, asked))
    assert found(bot) == everything
    assert found(bot, audience="group:Release") == [group["id"]]
    assert found(bot, kind="question") == [asked["id"]]
    assert found(bot, runId=fors["runId"]) == [fors["id"]]
    assert found(bot, q="other") == [group["id"]]
    assert found(bot, requestId=group["requestId"]) == [group["id"]]
    assert found(bot, status="answered") == []
    assert found(ada, mine="true") == found(ada) == [fors["id"]]
    assert found(person(factories.ben()), mine="true") == [asked["id"]]
    assert found(person(factories.ben())) == everything
    assert found(person(factories.cyd())) == []


def test_an_answered_question_is_found_by_its_own_id(bot: Api) -> None:
    told = ask(bot, audience={"keys": ["release-bot"]}).json()
    bot.post(
        f"/requests/{told['id']}/submit",
        {"digest": told["digest"], "response": {"approved": True}},
    )

    assert bot.get("/requests").json()["items"] == []
    found = bot.get("/requests", requestId=told["requestId"]).json()["items"]
    assert [row["status"] for row in found] == ["answered"]
    assert found[0]["responses"][0]["response"] == {"approved": True}
    assert TIME.fullmatch(found[0]["responses"][0]["at"])


def test_a_list_costs_the_same_for_one_question_and_for_thirty(bot: Api) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert bot.get("/requests", limit=100).status_code == 200
        return len(queries)

    ask(bot, "s0", audience={"users": ["u0"]})
    bot.get("/requests")
    alone = cost()
    for number in range(1, 30):
        ask(bot, f"s{number}", audience={"users": [f"u{number}"]})

    assert cost() == alone


def test_the_history_of_a_question_tells_of_no_other(bot: Api) -> None:
    one = ask(bot, audience={"keys": ["release-bot"]}).json()
    ask(bot, gateId="other")
    bot.post(f"/requests/{one['id']}/claim")
    bot.post(f"/requests/{one['id']}/release")
    ask(bot, input={"revision": "def456"})

    history = bot.get(f"/requests/{one['id']}/history").json()["items"]

    kinds = [event["kind"] for event in history if event["kind"] != "callback-routed"]
    assert kinds == [
        "callback-requested",
        "callback-claimed",
        "callback-released",
        "callback-superseded",
    ]
    assert [event["seq"] for event in history] == sorted(event["seq"] for event in history)
    assert all(event["actor"] == "key:release-bot" for event in history)
    assert all(TIME.fullmatch(event["ts"]) for event in history)
