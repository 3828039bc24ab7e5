"""The token budget of a run (runs.md R256, R266-R269)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from runs import agent_check, exit_code_for, gate_job, parallel, run, sequence
from runs.kernel.turns import AgentRequest, AgentResult

YES = '{"verdict": "yes", "confidence": 1, "reason": "fine"}'


class Scripted:
    """An engine that says yes and uses so many tokens; None does not say how many."""

    name = "scripted"

    def __init__(self, *used: int | None, fails: bool = False) -> None:
        self.used = list(used)
        self.fails = fails
        self.calls = 0
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def run(self, request: AgentRequest, on_event: Any, signal: Any) -> AgentResult:
        with self._lock:
            used = self.used[min(self.calls, len(self.used) - 1)]
            self.calls += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            threading.Event().wait(0.01)
            usage = {"kind": "unknown"}
            if used is not None:
                usage = {"kind": "reported", "inputTokens": used, "outputTokens": 0}  # type: ignore[dict-item]  # JSON
            if self.fails:
                if used is not None:
                    on_event({"kind": "usage", "usage": usage})
                raise OSError("away")
            return AgentResult.saying(YES, usage=usage)
        finally:
            with self._lock:
                self._now -= 1


def asks(engine: Scripted, label: str = "judge") -> Any:
    return gate_job(label, agent_check("Good?", engine=engine))


@pytest.mark.parametrize("given", [-1, True, "many", {}, {"limit": 5, "headroom": -1}, {"max": 5}])
def test_a_budget_that_cannot_be_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="budget"):
        run(asks(Scripted(1)), budget=given)


def test_a_call_beyond_the_limit_is_refused_and_the_run_pauses_r266() -> None:
    engine = Scripted(200)
    result = run(sequence("s", *[asks(engine, f"j{n}") for n in range(3)]), budget=150)
    assert engine.calls == 1
    assert result.outcome.status == "paused"
    assert exit_code_for(result.outcome) == 75
    assert result.budget == {"limit": 150, "spent": 200, "remaining": 0}


def test_under_fail_it_is_a_failure_r262() -> None:
    engine = Scripted(200)
    result = run(
        sequence("s", *[asks(engine, f"j{n}") for n in range(3)]), budget=150, on_limit="fail"
    )
    assert result.outcome.status == "fail"


def test_headroom_is_kept_free_r266() -> None:
    engine = Scripted(40)
    run(
        sequence("s", *[asks(engine, f"j{n}") for n in range(4)]),
        budget={"limit": 100, "headroom": 50},
    )
    assert engine.calls == 2


def test_a_soft_budget_warns_and_goes_on_r266(caplog: pytest.LogCaptureFixture) -> None:
    engine = Scripted(200)
    result = run(
        sequence("s", asks(engine, "a"), asks(engine, "b")), budget={"limit": 9, "soft": True}
    )
    assert result.outcome.status == "pass"
    assert "over budget used=200 limit=9" in caplog.text


def test_ten_at_once_never_spend_the_same_tokens_r269() -> None:
    engine = Scripted(60)
    job = parallel("p", [asks(engine, f"j{n}") for n in range(10)], concurrency=10)
    result = run(job, budget=100)
    assert engine.calls == 2
    assert result.budget["spent"] == 120


def test_calls_that_fit_beside_each_other_run_side_by_side() -> None:
    engine = Scripted(10)
    job = parallel("p", [asks(engine, f"j{n}") for n in range(4)], concurrency=4)
    assert run(job, budget={"limit": 1000, "headroom": 20}).outcome.status == "pass"
    assert engine.most_at_once > 1


def test_a_call_that_did_not_say_what_it_used_closes_a_hard_budget_r267() -> None:
    engine = Scripted(None)
    run(sequence("s", asks(engine, "a"), asks(engine, "b")), budget=1000)
    assert engine.calls == 1


@pytest.mark.parametrize(("used", "calls"), [(None, 3), (1100, 1)])
def test_a_failed_call_counts_by_what_it_said_r267(used: int | None, calls: int) -> None:
    engine = Scripted(used, fails=True)
    job = parallel("p", [asks(engine, f"j{n}") for n in range(3)], concurrency=1)
    run(job, budget=100, on_limit="fail")
    assert engine.calls == calls


def test_a_resumed_run_starts_from_what_was_spent_r256(tmp_path: Path) -> None:
    engine = Scripted(15)
    job = sequence("s", *[asks(engine, f"j{n}") for n in range(3)])
    record = tmp_path / "r.jsonl"
    for _ in range(2):
        result = run(job, budget=20, record_to=record, resume=True)
    assert engine.calls == 2
    assert result.budget["spent"] == 30
