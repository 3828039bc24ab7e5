"""The pages of questions: inbox, one question, and what may be done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from gates import access, services
from gates.errors import AlreadyAnswered, AnswerRefused, Expired, GateError, ReasonMissing
from gates.forms import AnswerForm
from gates.lists import inbox_page
from gates.lists.rows import rows_for
from gates.models import Request
from gates.pages import question_page
from gates.pages.question_page import GatePage
from gates.reviews.open_findings import open_findings
from runs.kernel.jsonable import JsonValueError
from runs.models import Step
from runs.people.principals import Principal
from runs.people.visitors import caller


@never_cache
@login_required
@require_GET
def inbox(request: HttpRequest) -> HttpResponse:
    """Show what waits for this person."""
    return render(request, "gates/inbox.html", inbox_page.inbox_page(caller(request), request.GET))


@never_cache
@login_required
@require_GET
def gate(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show one question beside the list."""
    return whole(request, question_page.gate_page(caller(request), pk, look=request.GET.dict()))


def whole(request: HttpRequest, page: GatePage, status: int = 200, **more: Any) -> HttpResponse:
    """Answer with the whole page: the list, and the question open in it."""
    shown = inbox_page.inbox_page(caller(request), request.GET, inbox_page.tab_of(page.detail))
    return render(request, "gates/gate.html", shown | {"gate": page, **more}, status=status)


def decision(request: HttpRequest, page: GatePage, status: int = 200, **more: Any) -> HttpResponse:
    """Answer with the decision card and what changed around it where htmx asked, else the page."""
    if request.headers.get("HX-Request"):
        (row,) = rows_for(caller(request), [page.detail.row])
        counts = inbox_page.counts_of(caller(request))
        news = {"gate": page, "row": row, "counts": counts, **more}
        return render(request, "gates/_decided.html", news, status=status)
    return whole(request, page, status, **more)


def after(request: HttpRequest, pk: UUID, **more: Any) -> HttpResponse:
    """Go on after an act that worked: the new card, or the page by a redirect."""
    if request.headers.get("HX-Request"):
        return decision(request, question_page.gate_page(caller(request), pk), **more)
    return redirect("gates:gate", pk=pk)


def refused(
    request: HttpRequest, pk: UUID, refusal: GateError, form: AnswerForm | None = None
) -> HttpResponse:
    """Show a lost race or a stale page with what is true now; what was typed is kept."""
    page = question_page.gate_page(caller(request), pk)
    page.refusal = str(refusal)
    page.typed_note = _typed_note(request)
    if isinstance(refusal, AlreadyAnswered) and page.detail.given is not None:
        given = page.detail.given
        page.conflict = {
            "who": given.actor_label,
            "at": given.at,
            "decision": {"yes": "approved", "no": "refused"}.get(given.verdict, given.decision),
            "typed_note": page.typed_note,
        }
    if form is not None and page.mode == "answer":
        page.form = form
    return decision(request, page, 410 if isinstance(refusal, Expired) else 409)


@login_required
@require_POST
def claim(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Take the question."""
    try:
        services.claim(pk, principal=caller(request))
    except GateError as refusal:
        return refused(request, pk, refusal)
    return after(request, pk, just_claimed=True)


@login_required
@require_POST
def release(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Give the claim back."""
    return _act(request, pk, lambda who: services.release(pk, principal=who, token=_token(request)))


@login_required
@require_POST
def force_release(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Take the claim from its holder, with a reason."""
    reason = request.POST.get("reason", "")
    return _act(request, pk, lambda who: services.force_release(pk, principal=who, reason=reason))


@login_required
@require_POST
def withdraw(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Take the question back, with a reason."""
    reason = request.POST.get("reason", "")
    return _act(request, pk, lambda who: services.withdraw(pk, principal=who, reason=reason))


def _act(request: HttpRequest, pk: UUID, act: Callable[[Principal], Any]) -> HttpResponse:
    try:
        act(caller(request))
    except ReasonMissing as missing:
        messages.error(request, str(missing))
        page = question_page.gate_page(caller(request), pk)
        page.refusal = str(missing)
        return decision(request, page, 422)
    except GateError as refusal:
        return refused(request, pk, refusal)
    return after(request, pk)


def _typed_note(request: HttpRequest) -> str:
    """What was written into the form's note, where that form is no longer shown."""
    typed = (request.POST.get(f"{AnswerForm.prefix}-{name}", "") for name in ("note", "prompt"))
    return next(filter(None, typed), "")[:10_000]


def _token(request: HttpRequest) -> str | None:
    return request.POST.get("claim_token") or None


@login_required
@require_POST
def answer(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Record the answer; a wrong one keeps its text and says what is wrong beside the field."""
    who = caller(request)
    row = access.find(who, pk)
    form = question_page.empty_form(row, request.POST, who)
    if form.is_valid() and not _has_seen_findings(request, row, form):
        form.add_error(None, "Tick that you have seen the open findings, or refuse.")
    if not form.is_valid():
        return _again(request, pk, form)
    try:
        services.submit(
            pk,
            principal=who,
            token=_token(request),
            digest=request.POST.get("digest", ""),
            response=form.response(),
            even_cancelled=request.POST.get("kept") == "on",
            seen=request.POST.get("seen_findings") == "on",
        )
    except AnswerRefused as refusal:
        form.add_faults(refusal.fields)
        return _again(request, pk, form)
    except JsonValueError as refusal:
        form.add_error(None, str(refusal))
        return _again(request, pk, form)
    except GateError as refusal:
        return refused(request, pk, refusal, form)
    return after(request, pk, just_now=True)


def _has_seen_findings(request: HttpRequest, row: Request, form: AnswerForm) -> bool:
    """A yes to work that passed with open findings says that they were read (design D22)."""
    if request.POST.get("seen_findings") == "on":
        return True
    return form.refuses or not open_findings(row)


def _again(request: HttpRequest, pk: UUID, form: AnswerForm) -> HttpResponse:
    page = question_page.gate_page(caller(request), pk, form)
    page.findings_seen = request.POST.get("seen_findings") == "on"
    if page.mode != "answer":
        page = question_page.gate_page(caller(request), pk)
        page.typed_note = _typed_note(request)
        page.refusal = "The answer was not recorded: you do not hold this question."
        return decision(request, page, 409)
    return decision(request, page, 422)


@login_required
@require_GET
def of_step(request: HttpRequest, run: UUID, position: int) -> HttpResponse:
    """Find the newest question of a step, wherever the page got its address from."""
    step = Step.objects.filter(run=run, position=position).first()
    if step is None:
        raise access.NotVisible("There is no such step here.")
    return _newest(request, run=run, step_path=step.path)


@login_required
@require_GET
def of_digest(request: HttpRequest, run: UUID, digest: str) -> HttpResponse:
    """Find a question of a run by its digest, as its record names it."""
    return _newest(request, run=run, digest=digest[:64])


def _newest(request: HttpRequest, **wanted: Any) -> HttpResponse:
    seen = access.visible_requests(caller(request)).filter(**wanted)
    found = seen.order_by("-asked_seq").first()
    if found is None:
        raise access.NotVisible("There is no such question here.")
    return redirect(found)
