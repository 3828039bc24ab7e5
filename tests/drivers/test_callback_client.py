from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.callbacks import (
    CallbackClient,
    create_callback_client,
    direct_router,
    replay_callback_client,
)
from runs.drivers.storage.client import StoredCallbackClient, local_callbacks
from runs.kernel.callbacks import CallbackSequenceError
from runs.kernel.jsonable import JsonValueError, canonical_json, parse_json, thaw
from tests.kernel.questions import question

A = question()
B = question(input={"revision": "def456"})


Client = CallbackClient | StoredCallbackClient


@pytest.fixture(params=["memory", "local"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    """A client without questions; stored ones give the same results (gates.md section 8)."""
    if request.param == "memory":
        return create_callback_client()
    return local_callbacks(tmp_path, "run")


@pytest.fixture
def client(fresh: Client) -> Client:
    fresh.post(A)
    return fresh


def kinds(client: Client, request: Any = None) -> list[str]:
    events = client.history(request.request_id if request else None)
    return [str(event["kind"]).removeprefix("callback-") for event in events]


def take(client: Client, request: Any = A, router_id: str = "r") -> str:
    claim = client.claim(request.request_id, router_id)
    assert claim.claim_token is not None
    return claim.claim_token


def test_the_guides_scenario_gives_the_guides_events(fresh: Client) -> None:
    client = fresh
    request = question()
    client.post(request)

    first = client.claim(request.request_id, "router-a")
    blocked = client.claim(request.request_id, "router-b")
    assert first.claim_token is not None
    released = client.release(request.request_id, first.claim_token)
    submitted = direct_router(client, request, "router-b", lambda _: {"approved": True})

    replayed = replay_callback_client(client.history())
    assert blocked.to_wire() == {"ok": False, "kind": "claimed", "routerId": "router-a"}
    assert (released.ok, submitted.ok) == (True, True)
    assert kinds(client) == ["requested", "claimed", "released", "claimed", "submitted"]
    assert replayed.list_pending() == []


def test_of_fifty_threads_exactly_one_claims(client: Client) -> None:
    gate = threading.Barrier(50)

    def race(number: int) -> Any:
        gate.wait()
        return client.claim(A.request_id, f"router-{number}")

    with ThreadPoolExecutor(50) as pool:
        results = list(pool.map(race, range(50)))

    won = [result for result in results if result.ok]
    lost = [result for result in results if not result.ok]
    assert (len(won), len(lost)) == (1, 49)
    assert {result.kind for result in lost} == {"claimed"}
    assert kinds(client) == ["requested", "claimed"]


def test_claim_tokens_are_fresh_and_long(client: Client) -> None:
    first = take(client)
    client.release(A.request_id, first)
    second = take(client)

    assert first != second
    assert min(len(first), len(second)) >= 43


def test_a_holder_cannot_claim_again(client: Client) -> None:
    take(client)

    assert client.claim(A.request_id, "r").kind == "claimed"


def test_a_router_without_a_name_raises_and_records_nothing(client: Client) -> None:
    with pytest.raises(ValueError, match="router_id"):
        client.claim(A.request_id, "")

    assert kinds(client) == ["requested"]


def test_a_question_comes_back_when_its_gate_asks_it_again(client: Client) -> None:
    token = take(client)
    client.post(B)
    assert client.submit(A.request_id, token, "r", A.digest, {"approved": True}).kind == "stale"
    assert client.release(A.request_id, token).kind == "not-owner"

    client.post(A)

    late = client.submit(A.request_id, token, "r", A.digest, {"approved": True})
    assert late.kind == "not-claimed"
    assert kinds(client, A) == ["requested", "claimed", "superseded", "requested"]
    assert kinds(client, B) == ["requested", "superseded"]
    assert client.list_pending() == [A]


def test_a_higher_version_supersedes_the_lower(client: Client) -> None:
    newer = question(gate_version=2)
    client.post(newer)

    assert client.list_pending() == [newer]


def test_an_answer_stays_when_the_question_changes(client: Client) -> None:
    direct_router(client, A, "r", lambda _: {"approved": True})
    client.post(B)

    replayed = replay_callback_client(client.history())

    assert replayed.claim(A.request_id, "s").kind == "answered"
    assert replayed.claim(B.request_id, "s").ok
    assert kinds(client, A) == ["requested", "claimed", "submitted"]


def test_an_answered_question_takes_no_second_answer(client: Client) -> None:
    token = take(client)
    once = client.submit(A.request_id, token, "r", A.digest, {"approved": True})
    twice = client.submit(A.request_id, token, "r", A.digest, {"approved": True})

    assert (once.ok, twice.ok, twice.kind) == (True, False, "not-claimed")


def test_a_response_that_is_not_json_changes_nothing(client: Client) -> None:
    token = take(client)

    with pytest.raises(JsonValueError):
        client.submit(A.request_id, token, "r", A.digest, {"approved": float("nan")})

    assert kinds(client) == ["requested", "claimed"]
    assert client.submit(A.request_id, token, "r", A.digest, {"approved": True}).ok


def test_an_actor_is_an_object_or_nothing(client: Client) -> None:
    token = take(client)
    actor: Any = ["ada"]

    with pytest.raises(ValueError, match="actor"):
        client.submit(A.request_id, token, "r", A.digest, {"approved": True}, actor=actor)

    assert kinds(client) == ["requested", "claimed"]
    given = {"id": "ada"}
    assert client.submit(A.request_id, token, "r", A.digest, {"approved": True}, actor=given).ok


def test_nobody_changes_the_client_from_outside(fresh: Client) -> None:
    given = {"revision": ["abc123"]}
    client = fresh
    client.post(question(input=given))
    given["revision"].append("x")
    listed = client.list_pending()[0]
    with pytest.raises(TypeError):
        listed.input["revision"] = 1  # type: ignore[index]  # on purpose
    client.history().clear()
    with pytest.raises(TypeError):
        client.history()[0]["kind"] = "x"  # type: ignore[index]  # on purpose

    assert client.list_pending()[0].input == {"revision": ["abc123"]}
    assert kinds(client) == ["requested"]


def test_a_stored_answer_does_not_follow_the_response_given(client: Client) -> None:
    token = take(client)
    response: dict[str, Any] = {"approved": True, "list": [1]}
    client.submit(A.request_id, token, "r", A.digest, response)
    response["list"].append(2)

    assert client.history()[-1]["response"] == {"approved": True, "list": [1]}


def test_the_history_of_one_question_leaves_out_events_that_only_name_it(
    client: Client,
) -> None:
    client.post(B)

    assert kinds(client, B) == ["requested"]
    assert kinds(client) == ["requested", "superseded", "requested"]
    assert client.history("unknown") == []


def test_superseding_by_hand_is_quiet_about_what_it_does_not_know(client: Client) -> None:
    client.supersede("unknown", "x")
    client.supersede(A.request_id, "x")
    client.supersede(A.request_id, "x")

    assert kinds(client) == ["requested", "superseded"]


def test_a_live_claim_survives_replay(client: Client) -> None:
    token = take(client)
    stored = [parse_json(canonical_json(event)) for event in client.history()]

    replayed = replay_callback_client(stored)

    assert replayed.history() == client.history()
    assert replayed.state == client.state
    assert replayed.submit(A.request_id, token, "r", A.digest, {"approved": True}).ok
    assert kinds(client) == ["requested", "claimed"]


def test_an_input_at_the_depth_limit_posts_and_replays(fresh: Client) -> None:
    deep: Any = None
    for _ in range(250):
        deep = [deep]
    client = fresh
    client.post(question(input=deep))

    assert replay_callback_client(client.history()).list_pending() == client.list_pending()


@pytest.mark.parametrize(
    "edit",
    [
        lambda history: history[2].update(response={"approved": "yes"}),
        lambda history: history[2].update(routerId="s"),
        lambda history: history[2].update(requestDigest=A.digest.upper()),
        lambda history: history[2].update(extra=1),
        lambda history: history[0]["request"].update(decisionText="Approve everything?"),
        lambda history: history.pop(0),
        lambda history: history.append(history[1]),
    ],
)
def test_an_edited_history_gives_no_client(client: Client, edit: Any) -> None:
    direct_router(client, A, "r", lambda _: {"approved": True})
    history = [thaw(event) for event in client.history()]
    edit(history)

    with pytest.raises(ValueError, match=r"callback-|request|refuses"):
        replay_callback_client(history)


def test_a_history_out_of_order_is_told_as_such(client: Client) -> None:
    take(client)

    with pytest.raises(CallbackSequenceError, match="never requested"):
        replay_callback_client(reversed(client.history()))


def test_a_client_may_start_from_a_seed(client: Client) -> None:
    seeded = create_callback_client(client.history())
    seeded.post(thaw(B.to_wire()))

    assert seeded.list_pending() == [B]
    assert client.list_pending() == [A]
