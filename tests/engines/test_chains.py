"""Fallback chains and preflight (engines.md section 7)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from runs import EngineError, agent_job, fallback_engine, format_preflight, preflight
from runs import run as run_job
from runs.drivers.signal import Signal
from runs.engines.preflight import preflight_engine
from runs.testing import MockEngine, mock_verdict


def failing(kind: str, name: str = "down") -> MockEngine:
    def fail() -> str:
        raise EngineError(kind, f"{name} is {kind}")

    return MockEngine(fail, name=name)


def ask(engine: Any, **options: Any) -> Any:
    return run_job(agent_job("Do it."), engine=engine, on_limit="fail", **options)


def test_e51_the_next_is_asked_and_the_dead_one_never_again() -> None:
    heard: list[Any] = []
    first, second = failing("auth", "one"), MockEngine(lambda: "here", name="two")
    chain = fallback_engine([first, second], on_fallback=lambda *told: heard.append(told[:3]))

    assert (ask(chain).outcome.data, ask(chain).outcome.data) == ("here", "here")
    assert (len(first.requests), len(second.requests)) == (1, 2)
    assert heard == [("one", "two", "auth")]
    assert chain.name == "one > two"


def test_e52_each_failed_attempt_is_counted_and_marked() -> None:
    result = ask(fallback_engine([failing("quota"), MockEngine(lambda: "here")]))

    told = [dict(event.fields) for event in result.events if event.kind == "engine:usage"]
    assert [one.get("failed", False) for one in told] == [True, False]


def test_e51_another_failure_surfaces_and_the_dead_stay_dead() -> None:
    first, second = failing("quota", "one"), failing("rate-limit", "two")
    chain = fallback_engine([first, second])

    for _ in range(2):
        error = ask(chain).outcome.error
        assert error is not None
        assert error["code"] == "RATE_LIMIT"
    assert (len(first.requests), len(second.requests)) == (1, 2)


def test_e51_when_all_are_dead_the_last_error_and_then_none_in_service() -> None:
    chain = fallback_engine([failing("auth", "one"), failing("billing", "two")])

    said = [str(ask(chain).outcome.summary) for _ in range(2)]
    assert said == ["two is billing", "no engine of one > two is in service any more."]


def test_e51_a_cancel_is_no_reason_to_ask_another() -> None:
    signal, second = Signal(), MockEngine(lambda: "here")

    def cancel() -> str:
        signal.set()
        raise EngineError("auth", "gone")

    result = ask(fallback_engine([MockEngine(cancel), second]), signal=signal)

    assert (result.outcome.status, second.requests) == ("aborted", [])


def test_e51_a_chain_has_an_engine() -> None:
    with pytest.raises(ValueError, match="one engine or more"):
        fallback_engine([])


def test_e44_preflight_asks_all_at_once_for_one_word() -> None:
    meet = threading.Barrier(2, timeout=30)
    engines = [MockEngine(lambda: meet.wait() * 0 or "ready", name=f"e{n}") for n in range(2)]

    found = preflight([*engines, failing("auth")])

    assert [(one.engine, one.ok, one.failure) for one in found] == [
        ("e0", True, None),
        ("e1", True, None),
        ("down", False, "auth"),
    ]
    (request,) = engines[0].requests
    assert (request.purpose, request.max_tokens, request.workspace_mode, request.leaf) == (
        "preflight",
        16,
        "none",
        True,
    )
    assert format_preflight(found[0]).startswith("✓ e0 mock: ready (")
    assert format_preflight(found[2]).startswith("✗ down: auth: down is auth (")


def test_e46_preflight_never_raises() -> None:
    hold, signal = threading.Event(), Signal()
    signal.set()

    assert preflight_engine(MockEngine(str), timeout_ms=0).failure == "invalid-config"
    assert preflight_engine(MockEngine(str), cancel=signal).failure == "aborted"
    slow = preflight_engine(MockEngine(lambda: hold.wait(30) and ""), timeout_ms=20)
    hold.set()
    assert slow.failure == "timeout"
    assert preflight_engine(MockEngine(lambda: 5)).failure == "unknown"
    assert preflight_engine(MockEngine(lambda: "")).detail == "an empty reply"


def test_e42_a_mock_verdict_is_read_as_one() -> None:
    from runs import agent_check, gate_job

    job = gate_job("judge", agent_check("Good?"))

    assert run_job(job, engine=mock_verdict("yes", 0.9)).outcome.passed
    assert run_job(job, engine=mock_verdict("no", 0.9)).outcome.status == "fail"
