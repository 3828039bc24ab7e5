"""How many runs go at once for a team, and how many of them do."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group

from gates.models import Team
from runs import admission
from runs.publishing import MAX_RUNS
from runs.turns.admission import TEAM, key_of
from runs.turns.lines import Admission, Limit


class PlacesForm(forms.Form):
    """The limit as a person writes it; empty is none."""

    most = forms.IntegerField(
        label="Runs at once",
        required=False,
        min_value=1,
        max_value=MAX_RUNS,
        help_text="Runs beyond it wait their turn. Empty for no limit.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["most"].widget_kind = "text"  # type: ignore[attr-defined]  # read by a template


def limit_of(group: Group) -> int | None:
    """How many runs of the team's workflows go at once; None is no limit."""
    found = Limit.objects.filter(key=key_of(TEAM, group.name)).values_list("most", flat=True)
    return found.first()


def set_limit(group: Group, most: int | None, *, by: int) -> None:
    """Let so many go at once from now on, and whoever there is room for at once.

    Runs that were let in go on; `by` is the person who changed it, whom the admin's log keeps.
    """
    key = key_of(TEAM, group.name)
    if most is None:
        Limit.objects.filter(key=key).delete()
    else:
        Limit.objects.update_or_create(key=key, defaults={"most": most})
    team, _ = Team.objects.get_or_create(group=group)
    words = "No limit of runs." if most is None else f"Runs at once: {most}."
    LogEntry.objects.log_actions(by, [team], CHANGE, change_message=words, single_object=True)
    admission.admit([key])


def in_words(group: Group) -> str:
    """The limit and who stands where: `2 runs at once, 2 under way, 3 in the queue`, or nothing."""
    most = limit_of(group)
    if most is None:
        return ""
    mine = Admission.objects.filter(key=key_of(TEAM, group.name))
    going, waiting = mine.filter(admitted=True).count(), mine.filter(admitted=False).count()
    at_once = "1 run at once" if most == 1 else f"{most} runs at once"
    return f"{at_once}, {going} under way, {waiting} in the queue"
