"""A person's own deputy."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from gates.answers import deputies
from gates.answers.deputy_form import DeputyForm
from gates.people_views import settings_page
from runs.people.visitors import caller


@login_required
@require_POST
def deputy(request: HttpRequest) -> HttpResponse:
    """Let somebody answer for the reader, or nobody any longer."""
    person = caller(request).user
    assert person is not None
    if request.POST.get("end") == "on":
        deputies.drop_deputy(person)
        messages.success(request, "Nobody answers for you any longer.")
        return redirect("gates:settings")
    form = DeputyForm(request.POST, person=person)
    if form.is_valid() and form.save():
        messages.success(request, "Your deputy may answer for you now.")
        return redirect("gates:settings")
    return settings_page(request, deputy_form=form, status=422)
