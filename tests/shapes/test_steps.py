from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.kernel.conditions import ConditionResult, always
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.outcomes import Finding, Outcome
from runs.shapes.dag import Node, dag
from runs.shapes.plan import job_meta
from runs.shapes.steps import command_job, command_succeeds, define_job, fn_job, gate_job

PYTHON = sys.executable


def outcome(fn: Any) -> Outcome:
    return run(fn_job("work", fn)).outcome


def kinds(result: RunResult) -> list[str]:
    return [str(event.kind) for event in result.events]


@pytest.mark.parametrize(
    ("value", "summary"), [(None, "work"), ("done in one line", "done in one line"), ("", "")]
)
def test_r32_nothing_or_a_line_is_a_pass(value: Any, summary: str) -> None:
    assert outcome(lambda _ctx: value) == Outcome(status="pass", summary=summary)


@pytest.mark.parametrize(
    "value", [Outcome(status="exhausted", data=[1]), {"status": "exhausted", "data": [1]}]
)
def test_r32_an_outcome_is_taken_as_it_is(value: Any) -> None:
    assert outcome(lambda _ctx: value) == Outcome(status="exhausted", data=[1])


@pytest.mark.parametrize(
    "value", [0, 3.5, True, [], {}, {"status": "done"}, {"status": "fail", "revision": 3}, object]
)
def test_r33_any_other_return_is_a_fail_that_names_label_and_value(value: Any) -> None:
    failed = outcome(lambda _ctx: value)

    assert failed.status == "fail"
    assert failed.error is not None
    assert failed.error["code"] == "VALIDATION"
    assert failed.summary is not None
    assert "'work'" in failed.summary
    assert repr(value) in failed.summary


def test_an_outcome_that_is_no_json_is_a_fail_that_says_where() -> None:
    failed = outcome(lambda _ctx: Outcome(status="pass", data={"when": {1, 2}}))  # type: ignore[dict-item]  # wrong on purpose

    assert failed.error is not None
    assert failed.error["code"] == "VALIDATION"
    assert "/data/when" in str(failed.summary)


def test_r34_a_raise_is_a_fail_with_the_exceptions_text() -> None:
    def fn(_ctx: Any) -> None:
        raise RuntimeError("no token=abc here")

    result = run(fn_job("work", fn))

    assert result.outcome.summary == "no [redacted] here"
    assert result.outcome.error == {
        "name": "LoopError",
        "code": "BODY",
        "message": "no [redacted] here",
        "phase": "body",
        "retryable": False,
    }
    assert kinds(result) == ["run:start", "job:start", "error", "job:end", "run:end"]


@pytest.mark.parametrize("raised", [SystemExit(3), KeyError("k"), LoopError("QUOTA", "spent")])
def test_r34_whatever_a_step_raises_the_run_returns(raised: BaseException) -> None:
    def fn(_ctx: Any) -> None:
        raise raised

    failed = run(fn_job("work", fn), on_limit="fail").outcome
    code = "QUOTA" if isinstance(raised, LoopError) else "BODY"
    assert failed.error is not None
    assert (failed.status, failed.error["code"]) == ("fail", code)


def test_r35_a_function_may_be_async() -> None:
    async def fn(ctx: Any) -> str:
        return f"at {ctx.path}"

    assert outcome(fn).summary == "at ()"


def test_r31_events_carry_the_label_at_the_steps_path() -> None:
    result = run(fn_job("work", lambda _ctx: None))
    start, end = (event for event in result.events if str(event.kind).startswith("job:"))

    assert start.to_wire() | {"ts": 0} == {
        "kind": "job:start",
        "ts": 0,
        "path": [],
        "label": "work",
    }
    assert end.fields["label"] == "work"
    assert end.fields["outcome"] == {"status": "pass", "summary": "work"}
    assert end.fields["durationMs"] >= 0


@pytest.mark.parametrize("make", [lambda: fn_job("", print), lambda: fn_job("x", 3)])  # type: ignore[arg-type]  # wrong on purpose
def test_a_step_needs_a_label_and_a_function(make: Any) -> None:
    with pytest.raises(DeclarationError):
        make()


def test_r81_define_job_returns_what_it_is_given() -> None:
    job = fn_job("x", print)

    assert define_job(job) is job


def test_r63_a_met_gate_passes_with_reason_and_confidence() -> None:
    met = ConditionResult(met=True, reason="all good", confidence=0.75)
    result = run(gate_job("gate", lambda _ctx, _last: met))

    assert result.outcome == Outcome(status="pass", summary="all good", confidence=0.75)
    assert kinds(result)[1:-1] == ["job:start", "condition:result", "job:end"]


def test_r63_an_unmet_gate_fails_with_the_output_as_data() -> None:
    unmet = {"met": False, "reason": "red", "output": "3 failed"}

    assert run(gate_job("gate", lambda _c, _l: unmet)).outcome == Outcome(
        status="fail", summary="red", data="3 failed"
    )


@pytest.mark.parametrize("output", ["3 failed", None])
def test_r64_an_unmet_gate_with_a_target_sends_back(output: str | None) -> None:
    unmet = ConditionResult(met=False, reason="red", output=output)
    made = run(gate_job("gate", lambda _c, _l: unmet, target="build")).outcome

    assert made.revision is not None
    assert (made.revision.target, made.revision.reason) == ("build", "red")
    assert made.revision.rerun == "target-and-dependents"
    assert made.revision.findings == (Finding(evidence=output or "red"),)


def test_an_async_check_is_awaited() -> None:
    async def check(_ctx: Any, _last: Any) -> bool:
        return False

    assert run(gate_job("gate", [always, check])).outcome.status == "fail"


def test_r62_a_command_that_exits_zero_passes() -> None:
    made = run(command_job("ok", [PYTHON, "-c", "print('hi')"])).outcome

    assert made.status == "pass"
    assert made.command is not None
    assert made.command["exitCode"] == 0
    assert made.data is None
    assert "hi" in str(made.summary)


def test_r62_a_command_that_does_not_exit_zero_fails_with_its_output() -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    made = run(command_job("bad", [PYTHON, "-c", script], target="build")).outcome

    assert made.status == "fail"
    assert made.command is not None
    assert made.command["exitCode"] == 3
    assert made.revision is not None
    (finding,) = made.revision.findings
    assert finding.severity == "block"
    assert finding.evidence == made.data
    for part in ("3", "out", "err"):
        assert part in finding.evidence


def test_r62_without_a_target_a_command_fails_plainly() -> None:
    made = run(command_job("bad", [PYTHON, "-c", "raise SystemExit(1)"], capture=False)).outcome

    assert made.status == "fail"
    assert made.revision is None


def test_r53_a_command_that_cannot_start_fails_and_never_raises() -> None:
    made = run(command_job("gone", "no-such-program-here")).outcome

    assert made.status == "fail"
    assert made.error is None
    assert made.command is not None
    assert made.command["exitCode"] is None


def test_r54_a_command_runs_in_the_workspace_with_its_own_variables(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script = "import os; print(os.getcwd(), os.environ['GREETING'])"
    made = run(
        command_job("where", [PYTHON, "-c", script], cwd="sub", env={"GREETING": "hello there"}),
        cwd=tmp_path,
    ).outcome

    assert str(tmp_path / "sub") in str(made.summary)


def test_r56_a_command_past_its_limit_fails_and_names_both() -> None:
    script = [PYTHON, "-c", "import time; time.sleep(60)"]
    made = run(command_job("slow", script, timeout_ms=200)).outcome

    assert made.status == "fail"
    assert "200 ms" in str(made.summary)
    assert made.command is not None
    assert made.command["timedOut"] is True


@pytest.mark.parametrize("timeout_ms", [0, -1, True, 1.5])
def test_a_time_limit_is_a_count(timeout_ms: Any) -> None:
    with pytest.raises(DeclarationError):
        command_succeeds("true", timeout_ms=timeout_ms)


def test_r61_a_command_that_needs_a_shell_is_refused_when_declared() -> None:
    with pytest.raises(LoopError) as caught:
        command_job("x", "make | tee log")

    assert caught.value.code == "VALIDATION"


def test_r227_the_shape_shows_a_command_without_its_secrets() -> None:
    job = command_job("x", ["curl", "--header", "Authorization: Bearer abcdef"])

    assert "abcdef" not in str(job.shape.to_json())


def test_r227_the_shape_shows_no_value_of_the_commands_own_variables() -> None:
    argv = ["curl", "-H", "zebra-crossing-77", "--mode", "dev"]
    job = command_job("x", argv, env={"PASS_ON": "zebra-crossing-77", "MODE": "dev"})

    assert job_meta(job) == {
        "kind": "command",
        "name": "x",
        "command": ["curl", "-H", "[redacted]", "--mode", "dev"],
    }


def test_r55_a_nodes_time_limit_is_not_the_commands() -> None:
    slow = command_job("slow", [PYTHON, "-c", "import time; time.sleep(0.3)"])
    flow = dag("g", {"slow": Node(job=slow, timeout_ms=1, timeout_grace_ms=1)})

    assert run(flow).outcome.passed


def test_r57_r58_only_a_command_that_is_not_met_has_output() -> None:
    def gate(code: int) -> Outcome:
        check = command_succeeds(PYTHON, ["-c", f"print('SAID'.lower()); raise SystemExit({code})"])
        return run(gate_job("gate", check)).outcome

    assert gate(0).data is None
    assert "python" in str(gate(0).summary)
    assert "said" not in str(gate(0).summary)
    assert gate(3).data == "exit code: 3\nstdout:\nsaid\nstderr:"
