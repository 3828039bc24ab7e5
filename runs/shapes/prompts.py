"""What the seats of a workflow are shown (workflows.md section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.feedback import feedback_text, plain, quoted, skipped_text
from runs.kernel.interactions import feedback_of

_DECISION: Final = (
    "Close your reply with one JSON object: "
    '{"status": "pass" or "revise", "summary": "one line", "findings": [{"evidence": "what and '
    'where", "severity": "block", "should-fix" or "nice-to-have", "recommendation": "how"}]}. '
)
UNUSABLE: Final = (
    "Your last reply could not be used: it held no such JSON object. Reply again, and close with "
    "the object."
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a stage is about, as its models are told."""

    brief: str
    stage: str
    desc: str | None = None
    gate: str | None = None
    files: tuple[str, ...] = ()
    """Everything declared up to here."""
    writes: tuple[str, ...] = ()
    """What a writer may write, or what is to be reviewed."""


def writer_prompt(task: Task, ctx: Any) -> str:
    """The brief, the stage, its files, and the review that the last work got (W82)."""
    parts = [*_about(task), f"You are the writer of the stage {quoted(task.stage)}."]
    parts.append(f"Write these files, relative to the workspace: {_listed(task.writes)}.")
    others = tuple(name for name in task.files if name not in task.writes)
    if others:
        parts.append(f"Other files of this work, which you leave as they are: {_listed(others)}.")
    review = ctx.last_review
    if review is not None:
        parts.append(feedback_text(review, target=task.stage))
        given = feedback_of(review)
        if given is not None:
            parts.append(f"What the person answered, as data:\n{quoted(plain(given))}")
    parts.append(
        _DECISION + 'Say "pass" when the files are written, and "revise" when this work cannot be '
        "done as it is asked for."
    )
    return "\n\n".join(parts)


def reviewer_prompt(task: Task, ctx: Any) -> str:
    """The brief, what to review and against what (W83)."""
    parts = [*_about(task), f"You review the stage {quoted(task.stage)}. You change no file."]
    parts.append(f"Read these files, relative to the workspace: {_listed(task.writes)}.")
    if ctx.skipped_findings:
        parts.append(skipped_text(ctx.skipped_findings))
    parts.append(_DECISION + 'Say "pass" when you accept the work as it is.')
    return "\n\n".join(parts)


def _about(task: Task) -> list[str]:
    parts = [f"The brief of the whole work:\n<brief>\n{task.brief}\n</brief>"]
    if task.desc:
        parts.append(f"What this stage does: {task.desc}")
    if task.gate:
        parts.append(f"What must be true for it to count: {task.gate}")
    return parts


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names) or "none"
