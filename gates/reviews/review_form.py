"""The form of a review by a person, and of any other rich question (gates.md section 12)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from django.forms import BoundField

from gates.forms import AnswerForm
from gates.models import Request
from gates.reviews.diffs import diff_in
from gates.reviews.rich import DECISION, FEEDBACK, PROMPT, is_review, is_rich, parts_of
from runs.inputs.formfields import TextField
from runs.inputs.schemafield import UNSET
from runs.inputs.validation import Fault, faults_of
from runs.kernel import interactions
from runs.kernel.annotations import (
    MAX_ANNOTATIONS,
    MAX_BODY,
    NAME,
    composed,
    disagreement,
    placed,
    takes_annotations,
)
from runs.kernel.diffs import Diff, FileDiff
from runs.kernel.interactions import APPROVED, CHANGES_REQUESTED
from runs.plaintext import visible

_OWN: Final = frozenset({PROMPT, DECISION, FEEDBACK})
# Bodies of every length that is kept, and what stands around them.
_MAX_COMMENTS_TEXT: Final = MAX_ANNOTATIONS * (MAX_BODY + 1_000)
# A comment box of a file takes several: each begins with the line it is about.
_AT_LINE: Final = re.compile(r"^[ \t]*(-?)([1-9][0-9]{0,8})[ \t]*:", re.MULTILINE)


class ReviewForm(AnswerForm):
    """The form of a rich question: the application's feedback, the words, and the decision."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        data: Any = None,
        *,
        diff: Diff | None = None,
        given: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.is_review = is_review(schema)
        self.diff = diff if diff is not None and takes_annotations(schema) else None
        self.comments: list[dict[str, Any]] = []
        self._whole = schema
        super().__init__(_flat(schema), data, given=_flattened(given), **options)
        if self.is_review:
            del self.fields[DECISION]
            self.is_approval = True
            self.verdict_name = self.add_prefix(DECISION)
            self.yes_value, self.no_value = APPROVED, CHANGES_REQUESTED
            self.yes_label = self.hinted_yes or "Approve"
            self.no_label = self.hinted_no or "Request changes"
        else:
            self.yes_label = self.hinted_yes or "Send the answer"
        if self.takes_comments and self.is_review:
            words = "Changes take a comment on at least one line; an approval takes none."
            self.fields[PROMPT].help_text = self.fields[PROMPT].help_text or words
        # Comments on lines say what to change as well as words about the whole do.
        self.note_required_on_no = self.is_review and not self.takes_comments

    @property
    def takes_comments(self) -> bool:
        """Whether a line can be commented on."""
        return self.diff is not None and self.diff.takes_comments

    @property
    def decision(self) -> str:
        """What was pressed."""
        return str(self.data.get(self.verdict_name, "")) if self.is_bound else ""

    @property
    def refuses(self) -> bool:
        return self.decision == CHANGES_REQUESTED

    @property
    def note_field(self) -> BoundField | None:
        """The words of a review: they stand in the bar with the verdicts, always in view."""
        is_text = isinstance(self.fields.get(PROMPT), TextField)
        return self[PROMPT] if self.is_review and is_text else None

    @property
    def in_flow(self) -> list[BoundField]:
        apart = {PROMPT} if self.note_field is not None else set()
        return [self[name] for name in self.fields if name not in apart]

    @property
    def comments_name(self) -> str:
        """The input with the comments that were made line by line, as JSON."""
        return self.add_prefix("comments")

    @property
    def comments_text(self) -> str:
        """The comments that were sent line by line, for a page that is shown again."""
        return str(self.data.get(self.comments_name, "")) if self.is_bound else ""

    @property
    def typed_by_file(self) -> dict[int, str]:
        """What stands in the comment boxes of the files, by their place in the change."""
        if not self.is_bound or self.diff is None:
            return {}
        found = {
            index: str(self.data.get(self.file_name(index), ""))
            for index in range(len(self.diff.files))
        }
        return {index: text for index, text in found.items() if text}

    def file_name(self, index: int) -> str:
        """The name of the comment box of a file."""
        return self.add_prefix(f"file-{index}")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.diff is not None:
            self.comments = [*self._from_lines(), *self._from_boxes()]
        if self.is_review and self.decision not in interactions.DECISIONS:
            self.add_error(None, f"Choose {self.yes_label} or {self.no_label}.")
        elif self.is_review and not self.non_field_errors():
            self._agree(cleaned)
        return cleaned

    def _agree(self, cleaned: Mapping[str, Any]) -> None:
        """Say what does not go together before anything is sent (G128, G196)."""
        if self.diff is not None:
            count, can = len(self.comments), self.takes_comments
            if fault := disagreement(self.decision, count, can_comment=can):
                self.add_error(None, fault)
        words = cleaned.get(PROMPT, UNSET)
        blank = words is UNSET or (isinstance(words, str) and not words.strip())
        if self.refuses and blank and not self.comments and not self.takes_comments:
            self.add_error(PROMPT, "Say what has to change.")

    def response(self) -> dict[str, Any]:
        """The response of section 12: feedback with its annotations, words, and the decision."""
        flat = super().response()
        feedback = flat.pop(FEEDBACK, None)
        inner = {
            name.removeprefix(f"{FEEDBACK}/"): flat.pop(name)
            for name in list(flat)
            if name.startswith(f"{FEEDBACK}/")
        }
        if feedback is None:
            feedback = inner
        if self.diff is not None and isinstance(feedback, dict):
            feedback[NAME] = self.comments
        words = flat.pop(PROMPT, "")
        if self.comments and isinstance(words, str):
            words = composed(words, self.comments)
        decided = {DECISION: self.decision} if self.is_review else {}
        return {**flat, FEEDBACK: feedback, PROMPT: words, **decided}

    def add_faults(self, faults: Any) -> None:
        """Put what was refused later beside the field it is about, feedback by its own parts."""
        told: list[Fault] = []
        for name, words in faults:
            if name == FEEDBACK and not self.errors:
                told += self._feedback_faults() or [(name, words)]
            elif name == DECISION:
                told.append(("", words))
            else:
                told.append((name, words))
        super().add_faults(told)

    def _feedback_faults(self) -> list[Fault]:
        declared = parts_of(self._whole)[0].get(FEEDBACK)
        if not isinstance(declared, Mapping):
            return []
        found = faults_of(declared, self.response()[FEEDBACK])
        known = set(self._property_of.values())
        return [
            (f"{FEEDBACK}/{name}", words) for name, words in found if f"{FEEDBACK}/{name}" in known
        ]

    # --- comments -----------------------------------------------------------------------------

    def _from_lines(self) -> list[dict[str, Any]]:
        """The comments of the page's script, as a list in JSON."""
        text = str(self.data.get(self.comments_name, "")) if self.is_bound else ""
        if not text:
            return []
        try:
            listed = json.loads(text) if len(text) <= _MAX_COMMENTS_TEXT else None
        except (ValueError, RecursionError):
            listed = None
        if not isinstance(listed, list):
            self.add_error(None, "The comments could not be read. Reload the page and try again.")
            return []
        assert self.diff is not None
        return [_bare(one) for one in placed(listed[:1000], self.diff, author={}, at="")]

    def _from_boxes(self) -> Iterator[dict[str, Any]]:
        """The comments of the boxes below the files; a line that is not there is a fault."""
        assert self.diff is not None
        for index, text in self.typed_by_file.items():
            file = self.diff.files[index]
            for side, position, body in _boxed(file, text):
                if not file.has_line(side, position):
                    where = "before the change" if side == "old" else "in the change"
                    words = f"{visible(file.path)} has no line {position} {where}."
                    self.add_error(None, words)
                elif body.strip():
                    anchor = {"target": file.path, "side": side, "position": position}
                    yield {"anchor": anchor, "body": body.strip()[:MAX_BODY].rstrip()}


def _bare(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"anchor": one["anchor"], "body": one["body"]}


def _boxed(file: FileDiff, text: str) -> Iterator[tuple[str, int, str]]:
    """The comments in a box: `12: words` is about line 12, `-12: words` about one before."""
    starts = list(_AT_LINE.finditer(text))
    before = text[: starts[0].start()] if starts else text
    first = file.first_line
    if before.strip() and first is not None:
        yield (*first, before)
    for match, following in zip_longest(starts, starts[1:]):
        body = text[match.end() : following.start() if following is not None else None]
        yield ("old" if match[1] else "new", int(match[2]), body)


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the parts of feedback beside the others, for one form."""
    properties, required = parts_of(schema)
    application = schema.get("allOf")
    said = parts_of(application[0])[0] if isinstance(application, list) and application else {}
    feedback = properties.get(FEEDBACK)
    feedback = feedback if isinstance(feedback, Mapping) else {}
    inner: dict[str, Any] = {
        f"{FEEDBACK}/{name}": {"title": _title(name), **declared}
        for name, declared in parts_of(feedback)[0].items()
        if name != NAME and isinstance(declared, Mapping)
    }
    if not inner and feedback.get("type", "object") != "object":
        inner = {FEEDBACK: feedback}
    reviews = is_review(schema)
    prompt = said.get(PROMPT)
    words = {
        "title": "Note" if reviews else "Your answer",
        **(prompt if isinstance(prompt, Mapping) else {}),
        "type": "string",
    }
    others = {name: declared for name, declared in properties.items() if name not in _OWN}
    decision = {DECISION: properties[DECISION]} if reviews else {}
    needed = {f"{FEEDBACK}/{name}" for name in parts_of(feedback)[1]} | (required - {DECISION})
    if reviews:
        needed -= {PROMPT}
    return {
        **{key: schema[key] for key in ("$defs", "definitions") if key in schema},
        "type": "object",
        "properties": {**inner, **others, PROMPT: words, **decision},
        "required": sorted(needed),
    }


def _title(name: str) -> str:
    words = re.sub(r"[_\-\s]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip()
    return (words[:1].upper() + words[1:])[:200] or name


def _flattened(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    feedback = given.get(FEEDBACK)
    inner = feedback if isinstance(feedback, Mapping) else {}
    return {**given, **{f"{FEEDBACK}/{name}": value for name, value in inner.items()}}


def form_for(row: Request, data: Any = None, *, given: Any = None, shown: Any = None) -> AnswerForm:
    """The form of a question, as its schema asks for it; `shown` is its input as it may be read."""
    facts = {"routing": row.routing, "presentation": row.presentation, "given": given}
    if not is_rich(row.response_schema):
        return AnswerForm(row.response_schema, data, **facts)
    diff = diff_in(row, row.input if shown is None else shown)
    return ReviewForm(row.response_schema, data, diff=diff, **facts)
