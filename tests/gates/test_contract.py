"""The hard cases of the gate contract, on the memory client and on the record of a run."""

from __future__ import annotations

from typing import Any

import pytest

from runs import fn_job
from runs.drivers.callbacks import CallbackClient, direct_router
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JsonValueError, canonical_json, thaw
from runs.stored import RecordCallbacks
from tests import factories, flows
from tests.kernel.questions import question

Client = CallbackClient | RecordCallbacks
A = question()
B = question(input={"revision": "def456"})
WRONG: tuple[Any, ...] = (
    {}, {"approved": 1}, {"approved": None}, {"approved": "true"}, [], None,
)  # fmt: skip


@pytest.fixture(params=["memory", pytest.param("stored", marks=pytest.mark.django_db)])
def client(request: pytest.FixtureRequest) -> Client:
    if request.param == "memory":
        return CallbackClient()
    return RecordCallbacks(factories.make_run(fn_job("wait", lambda ctx: None)).pk)


def kinds(client: Client, request: CallbackRequest | None = None) -> list[str]:
    flows.forget()
    events = client.history(request.request_id if request else None)
    return [str(event["kind"]).removeprefix("callback-") for event in events]


def take(client: Client, request: CallbackRequest = A, router: str = "r") -> str:
    token = client.claim(request.request_id, router).claim_token
    assert token is not None
    return token


def submit(client: Client, token: str, response: object, request: CallbackRequest = A) -> Any:
    return client.submit(request.request_id, token, "r", request.digest, response)


def test_the_guides_scenario_gives_the_guides_events(client: Client) -> None:
    client.post(A)

    first = take(client, A, "router-a")
    blocked = client.claim(A.request_id, "router-b")
    released = client.release(A.request_id, first)
    answered = direct_router(client, A, "router-b", lambda _: {"approved": True})

    assert blocked.to_wire() == {"ok": False, "kind": "claimed", "routerId": "router-a"}
    assert (released.ok, answered.ok, client.list_pending()) == (True, True, [])
    assert kinds(client) == ["requested", "claimed", "released", "claimed", "submitted"]


def test_six_wrong_answers_leave_the_claim_and_the_right_one_is_kept_whole(client: Client) -> None:
    client.post(A)
    token = take(client)

    refused = [submit(client, token, response) for response in WRONG]
    accepted = submit(client, token, {"approved": True, "zzz": 1})

    assert [result.kind for result in refused] == ["invalid"] * 6
    assert accepted.ok
    assert kinds(client) == ["requested", "claimed", *["rejected"] * 6, "submitted"]
    assert client.history()[-1]["response"] == {"approved": True, "zzz": 1}


def test_a_claim_dies_with_its_question_and_the_question_may_return(client: Client) -> None:
    client.post(A)
    token = take(client)
    client.post(B)

    late = client.claim(A.request_id, "s")
    assert submit(client, token, {"approved": True}).kind == "stale"
    assert client.release(A.request_id, token).kind == "not-owner"
    assert late.to_wire() == {"ok": False, "kind": "superseded", "routerId": None}

    client.post(A)

    assert submit(client, token, {"approved": True}).kind == "not-claimed"
    assert kinds(client, A) == ["requested", "claimed", "superseded", "requested"]
    assert kinds(client, B) == ["requested", "superseded"]
    assert client.list_pending() == [A]


def test_a_new_version_ends_the_old_one(client: Client) -> None:
    newer = question(gate_version=2)
    client.post(A)
    client.post(newer)

    assert client.list_pending() == [newer]
    assert kinds(client) == ["requested", "superseded", "requested"]


def test_an_answer_outlives_the_question_that_follows(client: Client) -> None:
    client.post(A)
    submit(client, take(client), {"approved": True})
    client.post(B)
    flows.forget()

    assert client.claim(A.request_id, "s").kind == "answered"
    assert client.claim(B.request_id, "s").ok
    assert kinds(client, A) == ["requested", "claimed", "submitted"]


def test_what_is_asked_and_handed_out_cannot_be_changed_afterwards(client: Client) -> None:
    given = {"revision": ["abc123"]}
    client.post(question(input=given))
    given["revision"].append("x")
    listed = client.list_pending()[0]

    with pytest.raises(TypeError):
        listed.input["revision"] = 1  # type: ignore[index]  # what is to be refused
    flows.forget()

    assert client.list_pending() == [question(input={"revision": ["abc123"]})]


def test_an_input_as_deep_as_may_be_is_posted_and_read_back(client: Client) -> None:
    deep: Any = None
    for _ in range(250):
        deep = [deep]
    client.post(question(input=deep))
    flows.forget()

    assert client.list_pending() == [question(input=deep)]


@pytest.mark.parametrize(
    "value", [1e16, 10**16, -0.0, 5e-324, "a\0b", "é", "e\u0301", {"\U0001f680": 2, "\ue000": 1}]
)
def test_a_question_reads_back_as_the_same_question(client: Client, value: Any) -> None:
    asked = question(input={"n": value})
    client.post(asked)
    flows.forget()
    read = client.list_pending()[0]

    assert (read.digest, read.request_id) == (asked.digest, asked.request_id)
    assert canonical_json(read.input) == canonical_json(asked.input)


@pytest.mark.parametrize("gate_id", ["a#b", "#", "ünï/…?x=1"])
def test_any_gate_id_is_claimed_and_answered(client: Client, gate_id: str) -> None:
    asked = question(gate_id=gate_id)
    client.post(asked)

    assert submit(client, take(client, asked), {"approved": True}, asked).ok


def test_names_that_mean_something_elsewhere_are_kept_word_for_word(client: Client) -> None:
    asked = question(response_schema={"properties": {"ok": {"type": "boolean"}}})
    odd = {"__class__": 1, "constructor": {"x": []}, "toString": None, "__proto__": {"ok": 1}}
    client.post(asked)

    assert submit(client, take(client, asked), odd, asked).ok
    flows.forget()
    assert thaw(client.history()[-1]["response"]) == odd


def test_the_contract_leaves_what_is_inside_a_field_to_the_host(client: Client) -> None:
    asked = question(
        response_schema={
            "properties": {
                "o": {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}},
                "s": {"type": "string", "minLength": 9},
            },
            "additionalProperties": False,
        }
    )
    client.post(asked)

    assert submit(client, take(client, asked), {"o": {}, "s": "short", "more": 1}, asked).ok


def test_an_answer_that_is_no_json_leaves_everything_as_it_was(client: Client) -> None:
    client.post(A)
    token = take(client)

    with pytest.raises(JsonValueError):
        submit(client, token, {"approved": float("nan")})

    assert kinds(client) == ["requested", "claimed"]
    assert submit(client, token, {"approved": True}).ok


def raising(_: CallbackRequest) -> Any:
    raise OSError("no line")


@pytest.mark.parametrize(
    ("responder", "error"),
    [(raising, OSError), (lambda _: {"approved": float("nan")}, JsonValueError)],
)
def test_a_router_that_fails_frees_its_claim(
    client: Client, responder: Any, error: type[Exception]
) -> None:
    client.post(A)

    with pytest.raises(error):
        direct_router(client, A, "r", responder)

    assert kinds(client) == ["requested", "claimed", "released"]


def test_a_router_that_answers_wrongly_frees_its_claim_and_is_told(client: Client) -> None:
    client.post(A)

    assert direct_router(client, A, "r", lambda _: {"approved": "x"}).kind == "invalid"
    assert kinds(client) == ["requested", "claimed", "rejected", "released"]


def test_a_router_whose_question_went_meanwhile_is_stale_and_nothing_more(client: Client) -> None:
    client.post(A)

    def slow(_: CallbackRequest) -> Any:
        client.post(B)
        return {"approved": True}

    assert direct_router(client, A, "r", slow).kind == "stale"
    assert kinds(client, A) == ["requested", "claimed", "superseded"]


def test_what_is_refused_or_known_already_leaves_no_event(client: Client) -> None:
    client.post(A)
    client.post(A)
    client.claim("unknown", "r")
    client.release(A.request_id, "no token")
    client.supersede("unknown", "x")
    with pytest.raises(ValueError, match="router_id"):
        client.claim(A.request_id, "")

    assert kinds(client) == ["requested"]


@pytest.mark.django_db
def test_two_clients_of_one_run_see_each_other_and_two_runs_do_not() -> None:
    first, second = (factories.make_run(fn_job("wait", lambda ctx: None)).pk for _ in range(2))
    here, there, elsewhere = (RecordCallbacks(run) for run in (first, first, second))
    here.post(A)
    elsewhere.post(B)
    token = take(there)

    assert here.claim(A.request_id, "s").router_id == "r"
    assert submit(here, token, {"approved": True}).ok
    assert elsewhere.list_pending() == [B]
