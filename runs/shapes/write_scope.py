"""Only what the author allowed has changed (runs.md R77-R80)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final, Literal

from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.errors import DeclarationError
from runs.kernel.globs import compiled
from runs.kernel.jsonable import digest_hex
from runs.kernel.outcomes import Outcome

NAMED: Final = 3
LISTED: Final = 50


def write_scope(
    globs: str | Sequence[str],
    *,
    cwd: str | PurePath | None = None,
    mode: Literal["delta", "absolute"] = "delta",
) -> Condition:
    """Met when every pending change of the git workspace matches a glob.

    `delta` looks at what changed since the enclosing loop was entered, `absolute` at everything
    that is pending; outside a loop both are the same. Paths are relative to the workspace, or to
    `cwd` in it. Where git cannot tell it is not met.
    """
    wanted = (globs,) if isinstance(globs, str) else tuple(globs)
    if not wanted or not all(isinstance(glob, str) and glob for glob in wanted):
        raise DeclarationError("write_scope() takes globs, such as src/** or *.md.")
    if mode not in ("delta", "absolute"):
        raise DeclarationError('the mode of write_scope() is "delta" or "absolute".')
    pattern = compiled(wanted)
    place = None if cwd is None else str(cwd)
    identity = {"name": "write_scope", "globs": list(wanted), "cwd": place, "mode": mode}

    def check(ctx: Any, _last: Outcome | None) -> ConditionResult:
        changed = ctx.changed_paths(cwd=cwd, since_entry=mode == "delta")
        if isinstance(changed, str):
            return ConditionResult(met=False, reason=f"the changes cannot be read: {changed}")
        outside = [path for path in changed if pattern.fullmatch(path) is None]
        if not outside:
            return ConditionResult(met=True, reason=f"all {len(changed)} changes are in scope")
        return ConditionResult(met=False, reason=_named(outside), output=_listed(outside))

    shape = {
        "op": "code",
        "label": f"writes only {', '.join(wanted)}",
        "code": digest_hex(identity),
        "watches": mode == "delta",
    }
    return Condition(shape, check=check)


def _named(outside: Sequence[str]) -> str:
    more = len(outside) - NAMED
    names = ", ".join(outside[:NAMED])
    return f"outside the scope: {names}{f' and {more} more' if more > 0 else ''}"


def _listed(outside: Sequence[str]) -> str:
    more = len(outside) - LISTED
    lines = [*outside[:LISTED], *([f"and {more} more"] if more > 0 else [])]
    return "\n".join(lines)
