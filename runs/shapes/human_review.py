"""A person's review of work: what they changed, what they wrote, and whether they approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Unpack

from runs.kernel import diffs
from runs.kernel.annotations import line_comments
from runs.kernel.approvals import default_input, fill_hints
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import LeafShape
from runs.kernel.interactions import (
    Interaction,
    outcome_of_answer,
    outcome_of_review,
    to_interaction,
    wrapped_schema,
)
from runs.kernel.jsonable import JSONValue, JsonValueError, snapshot
from runs.kernel.outcomes import Outcome
from runs.kernel.sources import code_digest
from runs.shapes.interacting import Asked, ask_shape, put
from runs.shapes.job import Asking, Job, Leaf

_UNSET: Final = object()
# What the presentation of a rich question points into: its input is the asker and the material.
MATERIAL: Final = "/material"


def human_review(
    name: str,
    question: str,
    *,
    input: Any = _UNSET,
    interaction: Interaction | Mapping[str, Any] | None = None,
    target: str | None = None,
    presentation: Mapping[str, JSONValue] | None = None,
    **asked: Unpack[Asked],
) -> Job:
    """A step that passes when a person approves, and only then; best as the review of a loop.

    `input` is what they judge: a JSON value or a function of ctx, computed anew in every run and
    round; by default the words of what came before. Where it holds a change (`changes`, `files` or
    a unified `diff`, as docs/reviews.md says) people see the change and comment on its lines.

    `interaction` is the form of the answer; by default words, line comments and the decision. The
    whole response is the outcome's data. Changes requested fail the step with what was written,
    and go to `target` where one is named. Who may answer and until when is said as in approval().
    Raises DeclarationError.
    """
    if not isinstance(name, str) or not name:
        raise DeclarationError("human_review() needs a name.")
    bound = line_comments() if interaction is None else to_interaction(interaction)
    who = f"human_review({name!r})"
    wrapped_schema(bound.response_schema, review=True)
    ask = ask_shape(who, question, bound, asked, target=target, presentation=presentation)
    shape = _shape("human-review", name, bound, ask, input)
    return Leaf(shape, lambda ctx: _review(ctx, shape, bound, input))


def ask_person(
    name: str,
    question: str,
    *,
    input: Any,
    interaction: Interaction,
    **asked: Unpack[Asked],
) -> Job:
    """A step that wants an answer and no decision: it passes with the answer (gates.md G143)."""
    wrapped_schema(interaction.response_schema, review=False)
    ask = ask_shape(f"question {name!r}", question, interaction, asked)
    shape = _shape("interaction", name, interaction, ask, input)
    return Leaf(shape, lambda ctx: _question(ctx, shape, interaction, input))


def _shape(kind: str, name: str, bound: Interaction, ask: Any, given: Any) -> LeafShape:
    parts = [code_digest(part) for part in (given, bound.answer) if callable(part)]
    extra: dict[str, JSONValue] = {"interaction": bound.to_json()}
    if given is not _UNSET and not callable(given):
        try:
            extra["material"] = snapshot(given)
        except JsonValueError as error:
            raise DeclarationError(f"the input of {name!r} is no JSON: {error}") from error
    return LeafShape(
        kind=kind,
        label=name,
        # It only reads and asks, and the same question is asked once: a second try is harmless.
        retry_safe=True,
        ask=ask,
        code="+".join(parts),
        extra=extra,
    )


def _material(ctx: Any, given: Any) -> Any:
    if given is _UNSET:
        return default_input(ctx.needs or {}, ctx.last_outcome, in_graph=ctx.needs is not None)
    return ctx.call(given) if callable(given) else given


def _review(ctx: Any, leaf: LeafShape, bound: Interaction, given: Any) -> Outcome | Asking:
    assert leaf.ask is not None
    material = _material(ctx, given)
    hints = _hints(ctx, leaf)
    if diffs.HINT not in hints and (found := diffs.pointer_of(material)):
        hints[diffs.HINT] = MATERIAL + found
    answer = put(ctx, leaf, bound, material=material, presentation=hints, review=True)
    if isinstance(answer, Asking):
        return answer
    return outcome_of_review(answer, target=leaf.ask.target)


def _question(ctx: Any, leaf: LeafShape, bound: Interaction, given: Any) -> Outcome | Asking:
    hints = _hints(ctx, leaf)
    answer = put(ctx, leaf, bound, material=_material(ctx, given), presentation=hints, review=False)
    return answer if isinstance(answer, Asking) else outcome_of_answer(answer)


def _hints(ctx: Any, leaf: LeafShape) -> dict[str, Any]:
    assert leaf.ask is not None
    return {name: fill_hints(hint, ctx.params) for name, hint in leaf.ask.presentation.items()}
