"""The working time of teams: when a question's hours are counted, and what a team says of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group

from gates.models import Team
from runs.kernel import worktime
from runs.kernel.worktime import Calendar, clock_text, minutes_of, read_calendar

DAYS = (
    (1, "Monday"),
    (2, "Tuesday"),
    (3, "Wednesday"),
    (4, "Thursday"),
    (5, "Friday"),
    (6, "Saturday"),
    (7, "Sunday"),
)


def calendar_for(routing: Mapping[str, Any]) -> tuple[str, Calendar] | None:
    """The first team of the question's audience that has said when it works, with its calendar."""
    audience = routing.get("audience")
    names = audience.get("groups", ()) if isinstance(audience, Mapping) else ()
    given = dict(
        Team.objects.filter(group__name__in=list(names), calendar__isnull=False).values_list(
            "group__name", "calendar"
        )
        if names
        else ()
    )
    for name in names:
        if name in given and (calendar := _read(given[name])) is not None:
            return name, calendar
    return None


def calendar_of(group: Group) -> Calendar | None:
    """What the team has said of its working time, if it has."""
    given = Team.objects.filter(group=group).values_list("calendar", flat=True).first()
    return None if given is None else _read(given)


def set_calendar(group: Group, calendar: Calendar | None, *, by: int | None = None) -> None:
    """What is asked from now on is counted by it; what was asked keeps its times.

    `by` is the person who changed it; the admin's own log keeps who it was, and to what.
    """
    team, _ = Team.objects.update_or_create(
        group=group, defaults={"calendar": None if calendar is None else calendar.to_json()}
    )
    if by is not None:
        words = "No working time." if calendar is None else calendar_words(calendar)
        LogEntry.objects.log_actions(
            by, [team], CHANGE, change_message=f"Working time: {words}", single_object=True
        )


def _read(given: Any) -> Calendar | None:
    try:
        return read_calendar(given)
    except ValueError:
        return None  # its zone is not known on this machine


class CalendarForm(forms.Form):
    """The working time of a team as a person writes it."""

    zone = forms.CharField(
        label="Time zone", max_length=64, help_text="For example Europe/Berlin or UTC."
    )
    days = forms.TypedMultipleChoiceField(
        label="Working days", coerce=int, choices=DAYS, widget=forms.CheckboxSelectMultiple
    )
    opens = forms.CharField(label="From", max_length=5, help_text="For example 09:00.")
    closes = forms.CharField(label="To", max_length=5, help_text="At most 24:00.")
    holidays = forms.CharField(
        label="Days off",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=f"One a line, such as 2026-12-25; at most {worktime.MAX_HOLIDAYS}.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = {"days": "multi", "holidays": "long"}
        for name, field in self.fields.items():
            field.widget_kind = kinds.get(name, "text")  # type: ignore[attr-defined]  # read by a template

    @classmethod
    def of(cls, calendar: Calendar) -> CalendarForm:
        """The form that shows this calendar."""
        return cls(
            initial={
                "zone": calendar.zone,
                "days": sorted(calendar.days),
                "opens": clock_text(calendar.opens),
                "closes": clock_text(calendar.closes),
                "holidays": "\n".join(sorted(day.isoformat() for day in calendar.holidays)),
            }
        )

    def clean_zone(self) -> str:
        return str(self._checked(worktime.zone_name, self.cleaned_data["zone"]))

    def clean_opens(self) -> str:
        return clock_text(self._checked(minutes_of, "From", self.cleaned_data["opens"]))

    def clean_closes(self) -> str:
        return clock_text(self._checked(minutes_of, "To", self.cleaned_data["closes"]))

    def clean_holidays(self) -> list[str]:
        lines = self.cleaned_data["holidays"].split()
        if len(lines) > worktime.MAX_HOLIDAYS:
            raise forms.ValidationError(f"At most {worktime.MAX_HOLIDAYS} days off.")
        try:
            return sorted({date.fromisoformat(line).isoformat() for line in lines})
        except ValueError:
            raise forms.ValidationError("Write each day as 2026-12-25, one a line.") from None

    def clean(self) -> dict[str, Any]:
        """The whole is a calendar; what is wrong between its parts is said of its end."""
        if not self.errors:
            try:
                self.cleaned_data["calendar"] = read_calendar(
                    {
                        name: self.cleaned_data[name]
                        for name in ("zone", "days", "opens", "closes", "holidays")
                    }
                )
            except ValueError as error:
                self.add_error("closes", f"{error}")
        return self.cleaned_data

    @staticmethod
    def _checked(read: Any, *given: Any) -> Any:
        try:
            return read(*given)
        except ValueError as error:
            raise forms.ValidationError(f"{error}") from None


def calendar_words(calendar: Calendar) -> str:
    """A calendar in one line: `Mon-Fri 09:00-17:00 Europe/Berlin, 3 days off`."""
    names = dict(DAYS)
    days = sorted(calendar.days)
    if len(days) > 1 and days == list(range(days[0], days[-1] + 1)):
        shown = f"{names[days[0]][:3]}-{names[days[-1]][:3]}"
    else:
        shown = ", ".join(names[day][:3] for day in days)
    off = len(calendar.holidays)
    more = f", {off} {'day' if off == 1 else 'days'} off" if off else ""
    return (
        f"{shown} {clock_text(calendar.opens)}-{clock_text(calendar.closes)} {calendar.zone}{more}"
    )
