"""The steps an author writes: a function, a command, a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

from runs.kernel.commandline import COMMAND_TIMEOUT_MS, parse_command
from runs.kernel.conditions import (
    Condition,
    ConditionResult,
    describe_conditions,
    to_condition,
    watches_workspace,
)
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import LeafShape
from runs.kernel.jsonable import digest_hex
from runs.kernel.outcomes import Finding, Outcome, revision_request
from runs.kernel.redact import REDACTED, SHORTEST_SECRET, redact
from runs.kernel.sources import code_digest
from runs.shapes.job import Job, Leaf, outcome_of
from runs.shapes.retry import to_policy

J = TypeVar("J")


def define_job(job: J) -> J:
    """The job, unchanged; it marks a file's workflow for its reader (runs.md R81)."""
    return job


def fn_job(
    label: str, fn: Callable[[Any], Any], *, retry_safe: bool = False, retry: Any = None
) -> Job:
    """A step that calls `fn(ctx)`, sync or async (runs.md R31-R36).

    `retry_safe` says that an interrupted call may simply be made again; `retry` (a number of
    attempts, or a mapping) that a failure which may pass is tried again (interactions.md I84).
    """
    _need_label(label)
    if not callable(fn):
        raise DeclarationError(f"fn_job({label!r}) takes a function of ctx.")
    if not isinstance(retry_safe, bool):
        raise DeclarationError(f"retry_safe of fn_job({label!r}) is no bool.")
    shape = LeafShape(
        kind="fn",
        label=label,
        retry_safe=retry_safe,
        code=code_digest(fn),
        retry=to_policy(retry, f"fn_job({label!r})"),
    )
    return Leaf(shape, lambda ctx: outcome_of(label, ctx.call(fn)))


def gate_job(label: str, condition: Any, *, target: str | None = None) -> Job:
    """A step that passes when the condition is met; `target` gets the work back if not (R63)."""
    _need_label(label)
    check = to_condition(condition)
    extra: dict[str, Any] = {"gate": list(describe_conditions(condition))}
    if watches_workspace(check.shape):
        extra["watches"] = True
    if target is not None:
        extra["target"] = target
    code = digest_hex(dict(check.shape))
    return Leaf(
        LeafShape(kind="gate", label=label, code=code, extra=extra),
        lambda ctx: _checked(ctx, label, check, target),
    )


def command_job(
    label: str,
    command: str | Sequence[str],
    *,
    cwd: str | PurePath | None = None,
    timeout_ms: int | None = None,
    env: Mapping[str, str] | None = None,
    target: str | None = None,
    capture: bool = True,
) -> Job:
    """A step that runs a command without a shell; exit 0 passes (runs.md R60-R62)."""
    _need_label(label)
    argv = parse_command(command)
    check = command_succeeds(
        argv[0], argv[1:], cwd=cwd, timeout_ms=timeout_ms, env=env, capture_output=capture
    )
    extra: dict[str, Any] = {"command": [_shown(part, env) for part in argv]}
    if target is not None:
        extra["target"] = target
    code = digest_hex(dict(check.shape))
    return Leaf(
        LeafShape(kind="command", label=label, code=code, extra=extra),
        lambda ctx: _checked(ctx, label, check, target),
    )


def _shown(part: str, env: Mapping[str, str] | None) -> str:
    """An argument as the plan may show it: without the values that `env` sets (runs.md R227)."""
    for value in sorted((env or {}).values(), key=len, reverse=True):
        if len(value.strip()) >= SHORTEST_SECRET:
            part = part.replace(value, REDACTED)
    return redact(part)


def command_succeeds(
    command: str,
    args: Sequence[str] = (),
    *,
    cwd: str | PurePath | None = None,
    timeout_ms: int | None = None,
    env: Mapping[str, str] | None = None,
    capture_output: bool = False,
) -> Condition:
    """Met on exit 0 within the time limit; never raises (runs.md R53-R59)."""
    argv = parse_command([command, *args])
    limit = COMMAND_TIMEOUT_MS if timeout_ms is None else timeout_ms
    if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
        raise DeclarationError(f"timeout_ms of the command {argv[0]!r} is no count of 1 or more.")
    identity = {
        "name": "command_succeeds",
        "argv": list(argv),
        "cwd": None if cwd is None else str(cwd),
        "timeoutMs": limit,
        "env": dict(env or {}),
        "capture": capture_output,
    }

    def check(ctx: Any, _last: Outcome | None) -> ConditionResult:
        result: ConditionResult = ctx.run_command(
            argv, cwd=cwd, timeout_ms=limit, env=dict(env or {}), capture_output=capture_output
        )
        return result

    shape = {"op": "code", "label": f"command {argv[0]}", "code": digest_hex(identity)}
    return Condition(shape, check=check)


def _checked(ctx: Any, label: str, check: Condition, target: str | None) -> Outcome:
    result = check(ctx, ctx.last_outcome)
    ctx.emit("condition:result", label=label, iteration=ctx.iteration, result=result.to_json())
    more: dict[str, Any] = {
        "confidence": result.confidence,
        "data": result.output,
        "command": result.command,
    }
    if result.met:
        return Outcome(status="pass", summary=result.reason, **more)
    if target is None:
        return Outcome(status="fail", summary=result.reason, **more)
    finding = Finding(evidence=result.output or result.reason)
    return revision_request(target=target, reason=result.reason, findings=[finding], **more)


def _need_label(label: str) -> None:
    if not isinstance(label, str) or not label:
        raise DeclarationError("a step needs a label.")
