"""What a page does to pass a question from hand to hand: assign, delegate, break the glass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from gates import access, services
from gates.access import Forbidden
from gates.errors import AnswerRefused, GateError, NotAssignable, ReasonMissing
from gates.forms import AnswerForm
from gates.pages import question_page
from gates.principals import Principal
from gates.views import after, decision, refused
from runs.kernel.jsonable import JsonValueError
from runs.people.visitors import caller


@login_required
@require_POST
def assign(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Give the question to a person."""
    to, reason = request.POST.get("to", ""), request.POST.get("reason", "")
    return _act(request, pk, lambda who: services.assign(pk, principal=who, to=to, reason=reason))


@login_required
@require_POST
def delegate(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Hand the question on to a person."""
    to, reason = request.POST.get("to", ""), request.POST.get("reason", "")
    token = request.POST.get("claim_token") or None
    return _act(
        request,
        pk,
        lambda who: services.delegate(pk, principal=who, to=to, reason=reason, token=token),
    )


def _act(request: HttpRequest, pk: UUID, act: Callable[[Principal], Any]) -> HttpResponse:
    try:
        act(caller(request))
    except (ReasonMissing, NotAssignable) as missing:
        page = question_page.gate_page(caller(request), pk)
        page.refusal = str(missing)
        page.handed = {name: request.POST.get(name, "")[:500] for name in ("to", "reason")}
        return decision(request, page, 422)
    except GateError as refusal:
        return refused(request, pk, refusal)
    return after(request, pk)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def break_glass(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Answer in an emergency what others were asked, on a page of its own."""
    who = caller(request)
    row = access.find(who, pk)
    if request.method != "POST":
        refusal = access.refusal_to_override(who)
        if refusal is not None:
            raise refusal
        return _glass(request, pk, question_page.empty_form(row, who=who))
    form = question_page.empty_form(row, request.POST, who)
    if not form.is_valid():
        return _glass(request, pk, form, status=422)
    try:
        services.break_glass(
            pk,
            principal=who,
            digest=request.POST.get("digest", ""),
            response=form.response(),
            reason=request.POST.get("reason", ""),
            seen=request.POST.get("seen_findings") == "on",
        )
    except AnswerRefused as faults:
        form.add_faults(faults.fields)
        return _glass(request, pk, form, status=422)
    except (ReasonMissing, JsonValueError) as missing:
        form.add_error(None, str(missing))
        return _glass(request, pk, form, status=422)
    except Forbidden:
        raise
    except GateError as refusal:
        return refused(request, pk, refusal)
    return redirect("gates:gate", pk=pk)


def _glass(request: HttpRequest, pk: UUID, form: AnswerForm, status: int = 200) -> HttpResponse:
    page = question_page.gate_page(caller(request), pk, form)
    page.findings_seen = request.POST.get("seen_findings") == "on"
    if not page.detail.row.is_open:
        return redirect("gates:gate", pk=pk)
    shown = {"gate": page, "reason": request.POST.get("reason", "")[:2_000]}
    return render(request, "gates/break_glass.html", shown, status=status)
