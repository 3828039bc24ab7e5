"""Run a step in a worktree of its own and land what it did (runs.md R68-R73, R128)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runs.drivers import clean
from runs.drivers.context import Context
from runs.drivers.tools import Workspace
from runs.engines import worktree
from runs.engines.filelock import NotWaited
from runs.engines.git import GitFailed
from runs.engines.worktree import Conflict, Fork, NoFork
from runs.kernel.errors import LoopError
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.turns import AgentRequest

if TYPE_CHECKING:
    from runs.drivers.execute import Ended

Record = str | Callable[[Any, Outcome], Any] | None
NAMED: Final = 10
_TRIES: Final = 3


def in_worktree(
    ctx: Context,
    name: str,
    do: Callable[[Context], Ended],
    *,
    on_conflict: str = "fail",
    record: Record = None,
) -> Ended:
    """What `do` came to in a worktree on branch `lines/<name>-<n>`; a pass is landed.

    Where there is no repository it runs in the shared workspace, with a warning. Raises GitFailed
    when the fork cannot be made.
    """
    try:
        fork = worktree.open_fork(ctx.workspace.dir, name, ctx.signal.is_set)
    except NoFork as reason:
        ctx.log(f"{name} runs in the shared workspace: {reason}.", "warn")
        return do(ctx)
    except NotWaited as reason:
        raise LoopError("ABORTED", str(reason), phase="body") from reason
    if fork.left_out:
        named = ", ".join(fork.left_out[:NAMED])
        more = len(fork.left_out) - NAMED
        tail = f" and {more} more" if more > 0 else ""
        ctx.log(f"{fork.branch} does not hold what is not committed: {named}{tail}.", "warn")
    keep = True
    try:
        ended = do(ctx.in_workspace(_workspace(ctx, fork)))
        keep = ended.raised
        if ended.outcome is not None and ended.outcome.passed:
            ended, keep = _landed(ctx, fork, ended, on_conflict, record)
        elif keep:
            _save(ctx, fork)
    finally:
        closed = fork.close(keep_branch=keep)
        for trouble in closed.troubles:
            ctx.log(f"{fork.branch} could not be cleaned up: {trouble}", "warn")
        if keep:
            ctx.log(f"the branch {fork.branch} is kept.", "warn")
    if closed.discarded is None:
        return ended
    gone = {"branch": closed.discarded.branch, "sha": closed.discarded.sha}
    if ended.outcome is None:
        ctx.log(f"{gone['branch']} was deleted; its last commit is {gone['sha']}.", "warn")
        return ended
    return replace(ended, outcome=ended.outcome.evolve(discarded=(*ended.outcome.discarded, gone)))


def _workspace(ctx: Context, fork: Fork) -> Workspace:
    origin = ctx.workspace.origin or ctx.workspace.dir
    return Workspace(dir=fork.dir, branch=fork.branch, origin=origin)


def _landed(
    ctx: Context, fork: Fork, ended: Ended, on_conflict: str, record: Record
) -> tuple[Ended, bool]:
    """The end after the landing, and whether the branch holds what did not land."""
    assert ended.outcome is not None
    try:
        fork.commit_remains(_message(ctx, fork, ended.outcome, record))
        merged = _merged(ctx, fork, on_conflict)
    except NotWaited as reason:
        cut = Outcome(status="aborted", summary=f"its work did not land: {reason}")
        return replace(ended, outcome=cut), False
    except (GitFailed, LoopError) as reason:
        text = f"the work did not land: {reason}. It is on the branch {fork.branch}."
        error = clean.error(ctx, LoopError("BODY", text, phase="body", cause=reason))
        return replace(ended, outcome=failing(error), error=error), True
    if merged is not None:
        ctx.log(f"{fork.branch} landed as {merged[:12]}.")
    return ended, False


def _merged(ctx: Context, fork: Fork, on_conflict: str) -> str | None:
    message = f"Land {fork.branch}"
    for _ in range(_TRIES):
        try:
            return fork.land(message, ctx.signal.is_set, ctx.port.is_held)
        except Conflict:
            if on_conflict != "synthesize":
                raise
            _synthesize(ctx, fork)
    return fork.land(message, ctx.signal.is_set, ctx.port.is_held)


def _synthesize(ctx: Context, fork: Fork) -> None:
    """Have an agent merge what landed meanwhile into the fork, where it harms nobody (R71)."""
    files = fork.take_in_parent()
    if files:
        listed = "\n".join(files)
        prompt = (
            "A git merge stopped in this directory. Resolve every conflict so that the intent of "
            "both sides is kept, remove all conflict markers, and change nothing else. "
            f"Do not commit.\nFiles in conflict:\n{listed}"
        )
        request = AgentRequest(
            prompt=prompt,
            workspace_mode="write",
            cwd=str(fork.tree.directory),
            env=ctx.variables(),
            timeout_ms=ctx.timeout_ms,
            timeout_grace_ms=ctx.timeout_grace_ms,
        )
        ctx.take_turn(None, request)
    fork.conclude(files, f"Take in what landed before {fork.branch}")


def _message(ctx: Context, fork: Fork, outcome: Outcome, record: Record) -> str:
    if record is None:
        return outcome.summary or fork.branch
    said = str(ctx.call(record, ctx, outcome)) if callable(record) else record
    return said if said.strip() else fork.branch


def _save(ctx: Context, fork: Fork) -> None:
    """A branch that is kept for recovery holds all there was."""
    try:
        fork.commit_remains(f"Unfinished work of {fork.branch}")
    except GitFailed as reason:
        ctx.log(f"{fork.branch} could not take in what was not committed: {reason}", "warn")
