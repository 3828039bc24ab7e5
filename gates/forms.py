"""The form of a question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.forms import BoundField

from runs.inputs.formfields import VerdictField
from runs.inputs.forms import SchemaForm
from runs.inputs.schemafield import UNSET
from runs.kernel.actions import DENY
from runs.plaintext import visible

VERDICT: Final = "approved"


class AnswerForm(SchemaForm):
    """The form of a question: for an approval its two verdicts are the buttons."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        data: Any = None,
        *,
        routing: Mapping[str, Any] | None = None,
        presentation: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(schema, data, given=given, **options)
        hints = presentation or {}
        target = (routing or {}).get("target")
        verdict = self.fields.get(VERDICT)
        self.is_approval = isinstance(verdict, VerdictField) and verdict.required
        self.verdict_name = self.add_prefix(VERDICT) if self.is_approval else ""
        refuse = f"Send back to {visible(target)}" if isinstance(target, str) else "Refuse"
        # What the two verdicts send.
        self.yes_value, self.no_value = "true", "false"
        self.hinted_yes, self.hinted_no = _hint(hints, "yesLabel"), _hint(hints, "noLabel")
        self.yes_label = self.hinted_yes or ("Approve" if self.is_approval else "")
        self.no_label = self.hinted_no or refuse
        self.confirm_yes = hints.get("confirm") is True or hints.get("confirmYes") is True
        self.confirm_no = hints.get("confirmNo") is True
        reasons = hints.get("reasons")
        listed = reasons if isinstance(reasons, list | tuple) else ()
        self.reasons = [visible(reason[:200]) for reason in listed if isinstance(reason, str)][:8]
        # A step that has to do it again needs to know what to change.
        self.note_required_on_no = (
            self.is_approval and isinstance(target, str) and "note" in self.fields
        )

    @property
    def refuses(self) -> bool:
        """Whether what was sent is a no."""
        denied = self.cleaned_data.get("decision") == DENY
        return denied or (self.is_approval and self.cleaned_data.get(VERDICT) is False)

    @property
    def note_field(self) -> BoundField | None:
        """The note of an approval: it stands in the bar with the verdicts, always in view."""
        return self["note"] if self.is_approval and "note" in self.fields else None

    @property
    def in_flow(self) -> list[BoundField]:
        """The fields above the bar: all but the verdict, which is the buttons, and its note."""
        apart = {VERDICT, "note"} if self.is_approval else set()
        return [self[name] for name in self.fields if name not in apart]

    def clean(self) -> dict[str, Any]:
        """A no that sends work back says why."""
        cleaned = super().clean()
        note = cleaned.get("note", UNSET)
        blank = note is UNSET or (isinstance(note, str) and not note.strip())
        if self.note_required_on_no and cleaned.get(VERDICT) is False and blank:
            self.add_error("note", "Say why, so that the step knows what to change.")
        return cleaned


def _hint(hints: Mapping[str, Any], name: str) -> str:
    value = hints.get(name)
    return visible(value.strip()[:80]) if isinstance(value, str) else ""
