"""The steps behind a workflow's stages: writers, reviewers and the files they may touch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs.kernel.answered import models_of
from runs.kernel.errors import EngineError, LoopError
from runs.kernel.loopshape import FILES
from runs.kernel.outcomes import Finding, Outcome, failing, revision_request
from runs.kernel.replies import INVALID_TEAM_DECISION, outcome_from_agent_text
from runs.kernel.seats import SeatIdentity, TeamSeat, model_identity
from runs.kernel.turns import RECORDED_ENGINE_USAGE, final_text
from runs.shapes.agent_job import Turn, leaf_of
from runs.shapes.job import Body, Job, Leaf
from runs.shapes.prompts import UNUSABLE, Task, reviewer_prompt, writer_prompt


@dataclass(frozen=True, kw_only=True)
class Writing:
    """A stage's writer: its turn, then a look at what it left."""

    turn: Turn
    writes: tuple[str, ...]
    is_reviewed: bool

    def __call__(self, ctx: Any) -> Outcome:
        made = self.turn(ctx)
        assert isinstance(made, Outcome), "a seat asks nobody"
        if not made.passed:
            return made
        return missing_files(ctx, self.turn.label, self.writes, made, again=self.is_reviewed)


@dataclass(frozen=True, kw_only=True)
class Reviewing:
    """A reviewer's turn, and whether its family may judge that of the writers (W187, W188)."""

    turn: Turn
    seat: SeatIdentity
    writers: tuple[tuple[str, SeatIdentity], ...]
    """The stages whose work it reads, and the seat that writes each."""
    families: frozenset[str]
    """Those of every reviewer beside it."""

    def __call__(self, ctx: Any) -> Outcome:
        written = self._written(ctx)
        decision = self._decided(ctx)
        answered = models_of(
            ctx.state.get(RECORDED_ENGINE_USAGE, []), **self._recorded("reviewer", ctx)
        )
        if self.writers:
            self._may_judge(answered, written)
        return decision

    def _written(self, ctx: Any) -> set[str]:
        """The families that wrote, refused before anybody is asked when one of them reviews."""
        listed, found = ctx.state.get(RECORDED_ENGINE_USAGE, []), set()
        for stage, _ in self.writers:
            for model in models_of(listed, role="writer", stage=stage):
                family = _family(model, f"the writer of {stage}")
                if family in self.families:
                    raise _refused(
                        f"the writer of {stage} answered as {model}, of the family {family}, "
                        "which reviews it."
                    )
                found.add(family)
        return found

    def _may_judge(self, answered: list[str], written: set[str]) -> None:
        if not answered:
            raise _refused(f"no answer of reviewer {self.turn.label} is recorded.")
        declared = {seat.model_family.lower(): stage for stage, seat in self.writers}
        for model in answered:
            family = _family(model, f"reviewer {self.turn.label}")
            if family in written or family in declared:
                raise _refused(
                    f"reviewer {self.turn.label} answered as {model}, of the family {family}, "
                    "which wrote the work."
                )

    def _decided(self, ctx: Any) -> Outcome:
        """The reviewer's decision; a reply without one is asked for once more (W84)."""
        turn = self.turn
        for _ in range(2):
            result, _ = turn.answered(ctx)
            decision = outcome_from_agent_text(ctx.scrubbed(final_text(result)))
            if decision.summary != INVALID_TEAM_DECISION:
                return decision.evolve(late=result.late)
            turn = replace(self.turn, prompt=_again(self.turn.prompt))
        text = f"reviewer {self.turn.label} gave no decision in two replies."
        raise LoopError("ENGINE", text, phase="review")

    def _recorded(self, role: str, ctx: Any) -> dict[str, Any]:
        return {"role": role, "stage": self.turn.record_as["stage"], "path": list(ctx.path)}


def writer_job(
    task: Task, seat: TeamSeat, *, effort: str | None, target: str | None, **options: Any
) -> Leaf:
    """The step of an agent stage; `options`: timeout_ms, retry_safe, is_reviewed."""
    is_reviewed = bool(options.pop("is_reviewed", False))
    turn = _turn(
        task.stage,
        seat,
        prompt=lambda ctx: writer_prompt(task, ctx),
        effort=effort or seat.effort,
        workspace_mode="write",
        writes=task.writes,
        # Where its own review follows, a writer that gives up has nobody to send the work to.
        outcome=lambda text, _ctx: outcome_from_agent_text(text, target),
        record_as={"role": "writer", "stage": task.stage},
        timeout_ms=options.pop("timeout_ms", None),
    )
    writing = Writing(turn=turn, writes=task.writes, is_reviewed=is_reviewed)
    return replace(leaf_of(turn, **options), body=writing)


def reviewer_job(
    name: str,
    task: Task,
    seat: TeamSeat,
    *,
    writers: Sequence[tuple[str, SeatIdentity]],
    families: frozenset[str],
    timeout_ms: int | None,
) -> Leaf:
    """The step of one member of a panel; it may run again after a crash, for it only reads."""
    turn = _turn(
        name,
        seat,
        prompt=lambda ctx: reviewer_prompt(task, ctx),
        effort=seat.effort,
        workspace_mode="read",
        record_as={"role": "reviewer", "stage": task.stage},
        timeout_ms=timeout_ms,
    )
    reviewing = Reviewing(turn=turn, seat=seat.identity, writers=tuple(writers), families=families)
    return replace(leaf_of(turn, retry_safe=True), body=reviewing)


def _turn(label: str, seat: TeamSeat, **more: Any) -> Turn:
    tools = seat.identity.tools
    return Turn(
        label=label,
        engine=seat.engine,
        model=seat.identity.model,
        tools=tools,
        allowed_tools=tools,
        **more,
    )


def _again(prompt: Any) -> Callable[[Any], str]:
    return lambda ctx: f"{ctx.call(prompt)}\n\n{UNUSABLE}"


def _family(model: str, who: str) -> str:
    try:
        return model_identity(model).family
    except EngineError as error:
        raise _refused(f"{who} answered as {model!r}: {error}") from error


def _refused(text: str) -> LoopError:
    return LoopError("BODY", text, phase="review")


def missing_files(
    ctx: Any, stage: str, files: Sequence[str], made: Outcome, *, again: bool
) -> Outcome:
    """A pass whose files are not there, or empty, is none (W26, W27, W35)."""
    missing = ctx.unwritten(files)
    if not missing:
        return made
    text = f"{stage} did not write {', '.join(missing)}."
    if not again:
        return made.evolve(status="fail", summary=text)
    findings = [Finding(evidence=f"{name} is missing or empty.") for name in missing]
    return revision_request(None, text, findings=findings, source=FILES, data=made.data)


def guarded(job: Job, stage: str, files: Sequence[str], *, phase: str) -> Job:
    """The step, which must leave these declared files as they are (W44, W45)."""
    if not files or not isinstance(job, Leaf):
        return job
    return replace(job, body=Guarded(body=job.body, stage=stage, files=tuple(files), phase=phase))


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A body beside files that are not its own; a breach replaces whatever came of it."""

    body: Body
    stage: str
    files: tuple[str, ...]
    phase: str

    def __call__(self, ctx: Any) -> Any:
        before = ctx.file_digests(self.files)
        try:
            made = self.body(ctx)
        except Exception:
            if breach := self._breach(ctx, before):
                return breach
            raise
        return self._breach(ctx, before) or made

    def _breach(self, ctx: Any, before: Mapping[str, str]) -> Outcome | None:
        after = ctx.file_digests(self.files)
        changed = [
            {
                "file": name,
                "before": before[name],
                "after": after[name],
                "change": _change(before[name], after[name]),
            }
            for name in self.files
            if before[name] != after[name] or after[name] == "outside"
        ]
        if not changed:
            return None
        told = ", ".join(f"{one['file']} ({one['change']})" for one in changed)
        text = f"{self.stage} touched declared files that are not its own: {told}."
        error = LoopError("WRITE_BOUNDARY", text, phase=self.phase)
        return failing(error).evolve(data={"breach": changed})


def _change(before: str, after: str) -> str:
    if after == "outside":
        return "leads out of the workspace"
    if before == "missing":
        return "created"
    return "removed" if after == "missing" else "changed"
