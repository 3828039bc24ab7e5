"""A role that a person fills in a workflow (gates.md G143-G146)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

from runs.kernel import diffs
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.interactions import Interaction, to_interaction
from runs.shapes.approval import approval
from runs.shapes.human_review import MATERIAL, ask_person, human_review
from runs.shapes.interacting import Asked, ask_shape
from runs.shapes.job import Job

MAX_FILE: Final = 1024 * 1024


@dataclass(frozen=True)
class Person:
    """A role: the question it is asked, the form of its answer, and who may fill it."""

    question: str
    interaction: Interaction | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reviews(self) -> bool:
        """Whether it can review work: that takes an interaction (G144)."""
        return self.interaction is not None

    def to_json(self) -> dict[str, Any]:
        """What a workflow's identity holds of the role: another question starts anew (G146)."""
        bound = None if self.interaction is None else self.interaction.to_json()
        return {"question": self.question, "interaction": bound}


def person(
    question: str,
    interaction: Interaction | Mapping[str, Any] | None = None,
    **asked: Unpack[Asked],
) -> Person:
    """A role a person fills: they are asked `question`, with `interaction` as form of the answer.

    Without an interaction it is a yes or no for an input stage. Who may answer and until when is
    said as in approval(). Raises DeclarationError for a blank question (G145).
    """
    bound = None if interaction is None else to_interaction(interaction)
    known = bound or Interaction("person", {})
    ask_shape("person()", question, known, asked)
    return Person(question, bound, dict(asked))


def input_job(role: Person, stage_name: str, target: str | None, brief: Any) -> Job:
    """The step of an input stage: a yes or no, or an answer to the question over the brief.

    `target` is the stage a no goes back to; an answer with an interaction needs no decision.
    """
    if role.interaction is None:
        return approval(stage_name, role.question, target=target, **role.asked)
    return ask_person(
        stage_name,
        role.question,
        input=brief,
        interaction=role.interaction,
        **role.asked,
    )


def review_job(role: Person, stage_name: str, files: Sequence[str]) -> Job:
    """The review of a stage's files by this person, over `{file: content}` (G144).

    Raises DeclarationError for a person without an interaction.
    """
    if role.interaction is None:
        raise DeclarationError(
            f"the person who reviews stage {stage_name!r} needs an interaction, such as "
            "line_comments()."
        )
    wanted = tuple(files)
    return human_review(
        stage_name,
        role.question,
        input=lambda ctx: _contents(ctx, stage_name, wanted),
        interaction=role.interaction,
        presentation={diffs.HINT: MATERIAL},
        **role.asked,
    )


def _contents(ctx: Any, stage_name: str, files: Sequence[str]) -> dict[str, str]:
    found = {file: ctx.read_text(file) for file in files}
    if missing := [file for file, content in found.items() if content is None]:
        text = f"stage {stage_name!r} has not written {', '.join(missing)}."
        raise LoopError("VALIDATION", text, phase="review")
    # Nobody approves what they were not shown: a file that is read in part only is refused.
    if long := [file for file, content in found.items() if len(content.encode()) >= MAX_FILE]:
        text = f"{', '.join(long)} is too long for a person to review: {MAX_FILE // 1024} KiB."
        raise LoopError("VALIDATION", text, phase="review")
    return found
