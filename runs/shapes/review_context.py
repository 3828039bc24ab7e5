"""What a reviewer is shown of the work: tests, changes, files (runs.md R104)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from runs.kernel.commandline import parse_command
from runs.kernel.errors import DeclarationError
from runs.kernel.outcomes import Outcome

NOTHING: Final = "(nothing to review was found)"
_CUT: Final = "\n[cut]"
Gather = Callable[[Any, Outcome | None], Awaitable[str]]


def review_context(
    diff: bool | str = False,
    files: Sequence[str | PurePath] | None = None,
    tests: bool | Mapping[str, Any] = False,
    max_chars: int = 6000,
) -> Gather:
    """An async function `(ctx, last)` that gathers tests, the git diff and files, in that order.

    `tests=True` is the last outcome; `tests={"command", "args", "cwd"}` is how that command ended.
    `diff=True` is what is not committed yet, a text the difference to that revision. The whole is
    cut to `max_chars` characters.
    """
    command = _command(tests)
    wanted = tuple(files or ())
    _check(diff, wanted, files, max_chars)

    async def gather(ctx: Any, last: Outcome | None) -> str:
        parts = []
        if command is not None:
            parts.append(_tested(ctx, *command))
        elif tests and last is not None:
            parts.append(_last(last))
        if diff and (changed := ctx.git_diff("HEAD" if diff is True else diff)):
            parts.append(f"Changes:\n{changed}")
        read = ((file, ctx.read_text(file)) for file in wanted)
        parts += [f"File {file}:\n{content}" for file, content in read if content is not None]
        text = str(ctx.scrubbed("\n\n".join(parts) or NOTHING))
        if len(text) <= max_chars:
            return text
        return (text[: max(0, max_chars - len(_CUT))] + _CUT)[:max_chars]

    return gather


def _check(diff: Any, wanted: tuple[Any, ...], files: Any, max_chars: Any) -> None:
    if isinstance(files, str) or not all(isinstance(file, str | PurePath) for file in wanted):
        raise DeclarationError("the files of review_context() are paths.")
    if isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 1:
        raise DeclarationError("max_chars of review_context() is no count of 1 or more.")
    if not isinstance(diff, bool | str) or (isinstance(diff, str) and diff.startswith("-")):
        raise DeclarationError("the diff of review_context() is True, False or a revision.")


def _command(tests: Any) -> tuple[tuple[str, ...], Any] | None:
    if isinstance(tests, bool):
        return None
    if not isinstance(tests, Mapping) or set(tests) - {"command", "args", "cwd"}:
        raise DeclarationError("the tests of review_context() are True or command, args and cwd.")
    return parse_command([tests.get("command", ""), *tests.get("args", ())]), tests.get("cwd")


def _tested(ctx: Any, argv: tuple[str, ...], cwd: Any) -> str:
    result = ctx.command(argv, cwd=cwd)
    told = ctx.judged(result, capture_output=True)
    return f"Tests: {told.reason}"


def _last(last: Outcome) -> str:
    parts = [f"Last outcome: {last.status}"]
    if last.summary:
        parts.append(last.summary)
    if last.data is not None:
        shown = last.data if isinstance(last.data, str) else json.dumps(last.data, indent=1)
        parts.append(shown)
    return "\n".join(parts)
