from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runs.drivers.callbacks import (
    CallbackClient,
    adirect_router,
    create_callback_client,
    direct_router,
)
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JsonValueError
from tests.kernel.questions import question

A = question()


@pytest.fixture
def client() -> CallbackClient:
    client = create_callback_client()
    client.post(A)
    return client


def kinds(client: CallbackClient) -> list[str]:
    return [str(event["kind"]).removeprefix("callback-") for event in client.history()]


async def approve_later(request: CallbackRequest) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"approved": True, "about": request.gate_id}


def never(request: CallbackRequest) -> Any:
    raise AssertionError("The responder was called.")


def test_it_claims_asks_and_submits(client: CallbackClient) -> None:
    seen: list[CallbackRequest] = []

    def approve(request: CallbackRequest) -> dict[str, Any]:
        seen.append(request)
        return {"approved": True}

    result = direct_router(client, A, "r", approve)

    assert result.to_wire() == {"ok": True, "response": {"approved": True}}
    assert seen == [A]
    assert kinds(client) == ["requested", "claimed", "submitted"]


def test_an_async_responder_is_awaited(client: CallbackClient) -> None:
    assert direct_router(client, A, "r", approve_later).response == {
        "approved": True,
        "about": "release-approval",
    }


def test_an_async_responder_is_awaited_even_below_a_running_loop(client: CallbackClient) -> None:
    async def inside() -> Any:
        return direct_router(client, A, "r", approve_later)

    assert asyncio.run(inside()).ok


@pytest.mark.parametrize("responder", [approve_later, lambda _: {"approved": True}])
def test_an_async_caller_awaits_either_kind_of_responder(
    client: CallbackClient, responder: Any
) -> None:
    assert asyncio.run(adirect_router(client, A, "r", responder)).ok


def test_a_refused_claim_names_its_kind_and_asks_nobody(client: CallbackClient) -> None:
    missing = direct_router(client, question(input=None), "r", never)
    client.claim(A.request_id, "holder")
    held = direct_router(client, A, "r", never)
    client.supersede(A.request_id, "x")
    superseded = asyncio.run(adirect_router(client, A, "r", never))

    assert (missing.ok, missing.kind) == (False, "missing")
    assert held.kind == superseded.kind == "not-claimed"
    assert "claimed by holder" in str(held.reason)
    assert "superseded" in str(superseded.reason)


def test_a_responder_that_raises_frees_the_claim(client: CallbackClient) -> None:
    def fail(request: CallbackRequest) -> Any:
        raise LookupError("nobody home")

    with pytest.raises(LookupError, match="nobody home"):
        direct_router(client, A, "r", fail)
    with pytest.raises(LookupError, match="nobody home"):
        asyncio.run(adirect_router(client, A, "r", fail))

    assert kinds(client) == ["requested", "claimed", "released", "claimed", "released"]
    assert client.list_pending() == [A]


def test_a_cancelled_responder_frees_the_claim(client: CallbackClient) -> None:
    async def wait_for_ever(request: CallbackRequest) -> Any:
        await asyncio.Event().wait()

    async def give_up() -> None:
        await asyncio.wait_for(adirect_router(client, A, "r", wait_for_ever), 0.001)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())

    assert kinds(client) == ["requested", "claimed", "released"]


def test_a_wrong_answer_frees_the_claim_and_is_told(client: CallbackClient) -> None:
    result = direct_router(client, A, "r", lambda _: {"approved": "x"})

    assert (result.ok, result.kind) == (False, "invalid")
    assert "approved" in str(result.reason)
    assert kinds(client) == ["requested", "claimed", "rejected", "released"]


def test_an_answer_that_is_not_json_frees_the_claim_and_raises(client: CallbackClient) -> None:
    with pytest.raises(JsonValueError):
        direct_router(client, A, "r", lambda _: {"approved": float("nan")})

    assert kinds(client) == ["requested", "claimed", "released"]


def test_a_question_superseded_meanwhile_is_stale_and_nothing_more(client: CallbackClient) -> None:
    newer = question(gate_version=2)

    def overtaken(request: CallbackRequest) -> dict[str, Any]:
        client.post(newer)
        return {"approved": True}

    result = direct_router(client, A, "r", overtaken)

    assert result.kind == "stale"
    assert kinds(client) == ["requested", "claimed", "superseded", "requested"]
