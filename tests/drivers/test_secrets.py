"""Injected values and secret-shaped text never enter an event (runs.md R227)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.kernel.conditions import ConditionResult
from runs.kernel.outcomes import Outcome, kickback
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.env import with_env
from runs.shapes.steps import command_job, fn_job, gate_job

VALUE = "zebra-crossing-77"
SHAPED = "sk-abcdefgh12345678"


def record(result: RunResult) -> str:
    return json.dumps([event.to_wire() for event in result.events], default=str)


def with_value(fn: Any) -> RunResult:
    return run(with_env(fn_job("work", fn), {"DEPLOY_TOKEN": VALUE}))


def say(ctx: Any) -> str:
    return f"{ctx.env_overlay['DEPLOY_TOKEN']} and {SHAPED}"


def raising(error: type[BaseException]) -> Any:
    def work(ctx: Any) -> None:
        raise error(say(ctx))

    return work


@pytest.mark.parametrize(
    "fn",
    [
        say,
        lambda ctx: Outcome(status="pass", summary=say(ctx), data={"deep": [say(ctx), {"k": 1}]}),
        lambda ctx: kickback("build", say(ctx)),
        lambda ctx: {"status": "fail", "error": {"code": "BODY", "message": say(ctx)}},
        lambda ctx: ctx.log(say(ctx)),
        lambda ctx: ctx.emit("proof", name=say(ctx), artifact={"data": [say(ctx)], say(ctx): 1}),
        lambda ctx: ctx.attach(say(ctx), b"x") and None,
        raising(RuntimeError),
        raising(SystemExit),
    ],
    ids=["line", "data", "finding", "error", "log", "event", "file", "raise", "exit"],
)
def test_a_step_records_no_secret(fn: Any) -> None:
    result = with_value(fn)

    assert VALUE not in record(result)
    assert SHAPED not in record(result)
    assert "[redacted]" in record(result)


def test_neither_does_a_conditions_reason() -> None:
    def check(ctx: Any, _last: Any) -> ConditionResult:
        return ConditionResult(met=False, reason=say(ctx), output=say(ctx))

    def broken(ctx: Any, _last: Any) -> bool:
        raise RuntimeError(say(ctx))

    gate = gate_job("gate", check)
    flow = dag(
        "g",
        {"a": gate, "b": Node(job=gate, when=check), "c": Node(job=gate, when=broken)},
        stop_on_error=False,
    )
    result = run(with_env(flow, {"DEPLOY_TOKEN": VALUE}))

    assert VALUE not in record(result)
    assert SHAPED not in record(result)
    assert "[redacted]" in record(result)


def test_what_a_command_got_is_kept_out_afterwards_too() -> None:
    code = "import os; print(os.environ['DEPLOY_TOKEN']); raise SystemExit(1)"
    command = [sys.executable, "-c", code]
    assert VALUE not in record(run(command_job("x", command, env={"DEPLOY_TOKEN": VALUE})))

    def work(ctx: Any) -> str:
        return str(ctx.command(command, env={"DEPLOY_TOKEN": VALUE}).stdout)

    assert VALUE not in record(run(fn_job("work", work)))


def test_an_address_is_no_secret_of_a_step() -> None:
    assert run(fn_job("a", lambda _ctx: "ask bob@x.io")).outcome.summary == "ask bob@x.io"


def test_where_the_shell_stands_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", str(Path.cwd()))

    assert run(fn_job("a", lambda _ctx: f"{Path.cwd()}/x")).outcome.summary == f"{Path.cwd()}/x"


def test_a_question_that_holds_a_secret_is_not_put() -> None:
    def about(ctx: Any) -> Any:
        return {"said": say(ctx)}

    job = with_env(approval("ok", "Ship?", input=about), {"DEPLOY_TOKEN": VALUE})
    result = run(job)

    assert result.outcome.status == "fail"
    assert VALUE not in record(result)
    assert "callback-requested" not in record(result)


@pytest.mark.parametrize("where", ["question", "answer"])
def test_neither_is_one_that_is_answered_at_once(where: str) -> None:
    def about(ctx: Any) -> Any:
        return {"said": say(ctx) if where == "question" else "no secret"}

    note = VALUE if where == "answer" else "fine"
    job = approval(
        "ok", "Ship?", input=about, answer=lambda _request: {"approved": True, "note": note}
    )
    result = run(with_env(job, {"DEPLOY_TOKEN": VALUE}))

    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "VALIDATION"
    assert VALUE not in record(result)


def test_a_question_may_name_what_is_no_secret() -> None:
    job = with_env(
        approval("ok", "Ship?", input=lambda _ctx: "to production"), {"TARGET": "production"}
    )

    assert run(job).outcome.status == "paused"
