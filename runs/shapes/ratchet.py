"""A measurement that may hold or get better, never worse (runs.md R94)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal

from runs.kernel.commandline import COMMAND_TIMEOUT_MS, parse_command
from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import digest_hex
from runs.kernel.metrics import metric_in
from runs.kernel.outcomes import Outcome


def ratchet(
    command: str,
    args: Sequence[str] = (),
    *,
    metric: str,
    direction: Literal["down", "up"] = "down",
    baseline_dir: str | PurePath | None = None,
    cwd: str | PurePath | None = None,
    timeout_ms: int | None = None,
    env: Mapping[str, str] | None = None,
) -> Condition:
    """Met when the command's metric is no worse than the best one so far (runs.md R94).

    The command prints a JSON object on a line of its own, `{"metrics": {"lines": 812}}` or
    `{"lines": 812}`; the last such line counts. The first number seeds the baseline, only a better
    one replaces it. Baselines are kept outside the workspace, in `OBVERSA_HOME` unless
    `baseline_dir` says where, by workspace, command, arguments and metric. Limits are in ms.
    """
    argv = parse_command([command, *args])
    if not isinstance(metric, str) or not metric:
        raise DeclarationError("ratchet() needs the name of a metric.")
    if direction not in ("down", "up"):
        raise DeclarationError('the direction of ratchet() is "down" or "up".')
    limit = COMMAND_TIMEOUT_MS if timeout_ms is None else timeout_ms
    if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
        raise DeclarationError("timeout_ms of ratchet() is no count of 1 or more.")
    identity = {
        "name": "ratchet",
        "argv": list(argv),
        "metric": metric,
        "direction": direction,
        "baselineDir": None if baseline_dir is None else str(baseline_dir),
        "cwd": None if cwd is None else str(cwd),
        "timeoutMs": limit,
        "env": dict(env or {}),
    }

    def check(ctx: Any, _last: Outcome | None) -> ConditionResult:
        result = ctx.command(argv, cwd=cwd, timeout_ms=limit, env=env)
        judged: ConditionResult = ctx.judged(result)
        if not judged.met:
            return judged
        value = metric_in(result.stdout, metric)
        if value is None:
            return ConditionResult(met=False, reason=f"{judged.reason} It printed no {metric}.")
        key = {"command": argv[0], "args": list(argv[1:]), "metric": metric}
        compared = ctx.baseline(key, value, down=direction == "down", folder=baseline_dir)
        before = "the first" if compared.before is None else f"{compared.before:g} so far"
        reason = f"{metric} is {value:g}, {before}"
        return ConditionResult(met=compared.met, reason=reason, command=judged.command)

    shape = {"op": "code", "label": f"ratchet {metric}", "code": digest_hex(identity)}
    return Condition(shape, check=check)
