"""Routers are set up here: whoever may do this makes the server call an address."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from gates.models import Router, RouterCall
from runs.admin import ReadOnly


class RouterForm(forms.ModelForm[Router]):
    """The secret is shown when it is made, and after that only replaced."""

    class Meta:
        model = Router
        fields = ("name", "url", "secret", "timeout_seconds", "sees_sensitive", "enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.fields["name"].disabled = True
            self.fields["secret"].required = False
            self.initial["secret"] = ""
            self.fields["secret"].help_text = "Left empty, it stays as it is."

    def clean_secret(self) -> str:
        given = str(self.cleaned_data.get("secret") or "")
        if given or self.instance.pk is None:
            return given
        kept = Router.objects.values_list("secret", flat=True).get(pk=self.instance.pk)
        if not kept:
            raise forms.ValidationError("The secret cannot be read any more. Give a new one.")
        return kept


@admin.register(Router)
class RouterAdmin(admin.ModelAdmin[Router]):
    form = RouterForm
    list_display = ["name", "url", "timeout_seconds", "sees_sensitive", "enabled"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Records name it: it is taken out of use instead."""
        return False


@admin.register(RouterCall)
class RouterCallAdmin(ReadOnly, admin.ModelAdmin[RouterCall]):
    list_display = ["router", "state", "attempts", "run", "seq", "next_at", "done_at", "error"]
    list_filter = ["state", "router"]
    list_select_related = ["run"]
    show_full_result_count = False
