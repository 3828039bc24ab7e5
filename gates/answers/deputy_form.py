"""A person's form for the time in which somebody else answers for them."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from django import forms
from django.utils import timezone

from gates.answers import deputies
from gates.errors import DeputyRefused
from gates.models import Deputy
from runs.plaintext import visible


class DeputyForm(forms.Form):
    """Who answers, and up to which day; an empty name ends it."""

    deputy = forms.CharField(
        label="Deputy",
        max_length=150,
        help_text="The name they sign in by. They may answer what you may answer, and no more.",
    )
    until = forms.DateField(
        label="Up to and including",
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=f"At most {deputies.MAX_DAYS} days from now.",
    )

    def __init__(self, *args: Any, person: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        for name, kind in (("deputy", "text"), ("until", "date")):
            self.fields[name].widget_kind = kind  # type: ignore[attr-defined]  # read by a template

    @property
    def current(self) -> dict[str, Any] | None:
        """Who answers now."""
        row: Deputy | None = deputies.deputy_of(self.person)
        if row is None:
            return None
        name = row.deputy.get_full_name() or row.deputy.username
        return {"label": visible(name), "until": row.until}

    def save(self) -> bool:
        """Name the deputy; False with the reason on its field where that cannot be."""
        day = self.cleaned_data["until"]
        # The whole last day, by the clock that the pages are written in.
        until = timezone.make_aware(datetime.combine(day, time.max))
        try:
            deputies.name_deputy(self.person, self.cleaned_data["deputy"], until)
        except DeputyRefused as refusal:
            self.add_error(refusal.field, str(refusal))
            return False
        return True
