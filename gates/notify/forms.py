"""The forms about channels, quiet hours and zones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, cast
from zoneinfo import available_timezones

from django import forms

from gates.models import Channel, Preference
from gates.notify import kinds
from gates.notify.addresses import MAX_ADDRESS, schemes

_LABELS: Final = {
    Channel.Kind.MAIL: ("Address", "Where the team's mail goes."),
    Channel.Kind.SERVICE: ("Address of the service", ""),
    Channel.Kind.WEBHOOK: ("Address", "Begins with https://. Each event is posted there, signed."),
}
_EXAMPLE: Final = "An Apprise address such as slack://TokenA/TokenB/TokenC. Here: {}."


class ChannelForm(forms.Form):
    """What a channel is called, where it leads and what it is told."""

    name = forms.CharField(label="Name", max_length=60)
    address = forms.CharField(max_length=MAX_ADDRESS, widget=forms.TextInput)
    wants = forms.MultipleChoiceField(
        label="Tell it when",
        choices=list(kinds.GROUP_WORDS.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=list(kinds.USUAL),
    )
    digest = forms.ChoiceField(label="Send", choices=Channel.Digest.choices, initial="off")

    def __init__(self, kind: str, *args: Any, with_address: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = Channel.Kind(kind)
        if with_address:
            label, words = _LABELS[self.kind]
            given = self.fields["address"]
            given.label = label
            given.help_text = words or _EXAMPLE.format(", ".join(schemes()))
            given.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        else:
            del self.fields["address"]
        if self.kind == Channel.Kind.WEBHOOK:
            del self.fields["digest"]
            self.fields["wants"].initial = list(kinds.GROUPS)
        _drawn(self, wants="multi")

    @classmethod
    def of(cls, channel: Channel) -> ChannelForm:
        """The form of a channel that is there."""
        given = {"name": channel.name, "wants": channel.wants, "digest": channel.digest}
        return cls(channel.kind, initial=given, with_address=False)


class QuietForm(forms.Form):
    """When nothing is sent, by the person's own clock."""

    quiet_from = forms.TimeField(label="Quiet from", required=False)
    quiet_until = forms.TimeField(label="Until", required=False)
    zone = forms.ChoiceField(label="Time zone")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["zone"]).choices = _zones()
        for name in ("quiet_from", "quiet_until"):
            self.fields[name].widget = forms.TimeInput(format="%H:%M", attrs={"type": "time"})
        _drawn(self)

    @classmethod
    def of(cls, preference: Preference | None) -> QuietForm:
        """The form of what the person said before."""
        if preference is None:
            return cls(initial={"zone": "UTC"})
        given = {name: getattr(preference, name) for name in ("quiet_from", "quiet_until", "zone")}
        return cls(initial=given)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        begin, end = cleaned.get("quiet_from"), cleaned.get("quiet_until")
        if (begin is None) != (end is None) and not self.errors:
            missing = "quiet_until" if end is None else "quiet_from"
            self.add_error(missing, "Quiet hours have a beginning and an end.")
        elif begin is not None and begin == end:
            self.add_error("quiet_until", "Quiet hours end at another time than they begin.")
        return cleaned


def _drawn(form: forms.Form, **drawn: str) -> None:
    for name, field in form.fields.items():
        field.widget_kind = drawn.get(name, "text")  # type: ignore[attr-defined]  # read by a template


@lru_cache(maxsize=1)
def _zones() -> list[tuple[str, str]]:
    named = sorted(name for name in available_timezones() if "/" in name and _is_place(name))
    return [("UTC", "UTC"), *((name, name.replace("_", " ")) for name in named)]


def _is_place(name: str) -> bool:
    return not name.startswith(("Etc/", "SystemV/", "posix/", "right/"))
