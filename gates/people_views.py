"""A person's own settings and keys."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from gates import keys
from gates.access import NotVisible
from gates.answers.deputy_form import DeputyForm
from gates.errors import KeyRefused
from gates.models import ApiKey
from gates.notify import page
from gates.notify.forms import QuietForm
from runs.people.visitors import caller
from runs.plaintext import visible


class KeyForm(forms.Form):
    """What a new key is called and what it may do."""

    name = forms.CharField(
        label="Name", max_length=100, help_text="What uses it, for example deploy-bot."
    )
    scopes = forms.MultipleChoiceField(
        label="May",
        choices=[
            ("read", "read what you may see"),
            ("start", "start runs and ask questions"),
            ("claim", "claim questions"),
            ("answer", "answer questions"),
            ("operate", "cancel, resume and rescue"),
        ],
        widget=forms.CheckboxSelectMultiple,
    )
    days = forms.TypedChoiceField(
        label="Ends",
        coerce=int,
        required=False,
        empty_value=None,
        initial=keys.PERSONAL_DAYS,
        choices=[
            (7, "after a week"),
            (30, "after 30 days"),
            (keys.PERSONAL_DAYS, "after 90 days"),
            (365, "after a year"),
            (0, "never"),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, kind in (("name", "text"), ("scopes", "multi")):
            self.fields[name].widget_kind = kind  # type: ignore[attr-defined]  # read by a template


@never_cache
@login_required
@require_GET
def settings(request: HttpRequest) -> HttpResponse:
    """Show the reader's own keys and choices."""
    return settings_page(request)


def settings_page(
    request: HttpRequest,
    form: KeyForm | None = None,
    *,
    new: str = "",
    quiet_form: QuietForm | None = None,
    deputy_form: DeputyForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """The reader's own page, with a form on it as it was sent."""
    mine = ApiKey.objects.filter(user=request.user.pk).order_by("revoked_at", "-created_at")
    shown = {
        "new_key": new,
        "keys": [
            {
                "id": key.pk,
                "name": visible(key.name),
                "prefix": f"obv_{key.prefix}",
                "scopes_text": ", ".join(key.scopes),
                "created_at": key.created_at,
                "last_used_at": key.last_used_at,
                "expires_at": key.expires_at,
                "revoked_at": key.revoked_at,
            }
            for key in mine
        ],
        "form": form or KeyForm(),
        "away": deputy_form or DeputyForm(person=request.user),
        "notify": page.own_part(caller(request), quiet_form),
    }
    return render(request, "gates/settings.html", shown, status=status)


@never_cache
@login_required
@require_POST
def key_create(request: HttpRequest) -> HttpResponse:
    """Make a key and show it this once."""
    form = KeyForm(request.POST)
    if form.is_valid():
        try:
            _, text = keys.create_key(
                form.cleaned_data["name"],
                form.cleaned_data["scopes"],
                user=caller(request).user,
                days=form.cleaned_data["days"],
            )
        except KeyRefused as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
        else:
            return settings_page(request, new=text)
    return settings_page(request, form, status=422)


@login_required
@require_POST
def key_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of the reader's own keys."""
    key = ApiKey.objects.filter(pk=pk, user=request.user.pk).first()
    if key is None:
        raise NotVisible("There is no such key of yours.")
    keys.revoke(key)
    return redirect("gates:settings")
