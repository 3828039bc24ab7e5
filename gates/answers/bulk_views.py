"""Answering several like questions with one form: preview first, then each by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from gates.access import NotVisible
from gates.answers import bulk
from gates.answers.bulk import Preview, Result
from gates.forms import VERDICT, AnswerForm
from gates.pages import question_page
from gates.principals import Principal
from gates.teams import team_views
from runs.people.visitors import caller


def _picked(values: Iterable[str]) -> tuple[list[UUID], dict[UUID, str]]:
    """The selection of an address or a form: ids, each with the digest by which it was shown."""
    found: list[UUID] = []
    digests: dict[UUID, str] = {}
    for value in list(values)[: bulk.MAX_PICKED + 1]:
        key, _, digest = value.partition(".")
        try:
            pk = UUID(key)
        except ValueError:
            continue
        found.append(pk)
        digests[pk] = digest[:64]
    return found, digests


@never_cache
@login_required
@require_GET
def bulk_preview(request: HttpRequest) -> HttpResponse:
    """Show what one answer would answer, what differs, and what is left out."""
    picked, _ = _picked(request.GET.getlist("pick"))
    who = caller(request)
    shown = bulk.preview(who, picked)
    form = None if shown.first is None else question_page.empty_form(shown.first, None, who)
    return _page(request, shown, form, is_cut=len(picked) > bulk.MAX_PICKED)


@never_cache
@login_required
@require_POST
def bulk_answer(request: HttpRequest) -> HttpResponse:
    """Give the answer to each question that was shown, and say what came of each."""
    who = caller(request)
    picked, digests = _picked(request.POST.getlist("pick"))
    shown = bulk.preview(who, picked)
    if shown.first is None:
        return _page(request, shown, None, status=409)
    form = question_page.empty_form(shown.first, request.POST, who)
    if not form.is_valid():
        return _page(request, shown, form, status=422)
    results = bulk.answer(who, shown.items, digests, form.response())
    return _results(request, who, form, shown, results)


def _page(
    request: HttpRequest,
    shown: Preview,
    form: AnswerForm | None,
    *,
    is_cut: bool = False,
    status: int = 200,
) -> HttpResponse:
    page = {
        "items": shown.items,
        "left_out": shown.left_out,
        "unseen": shown.unseen,
        "form": form,
        "is_cut": is_cut,
        "limit": bulk.MAX_PICKED,
        **_way_back(request),
    }
    return render(request, "gates/bulk.html", page, status=status)


def _results(
    request: HttpRequest,
    who: Principal,
    form: AnswerForm,
    shown: Preview,
    results: list[Result],
) -> HttpResponse:
    done = [one for one in results if one.receipt is not None]
    given = form.response()
    page = {
        "results": [
            {
                "url": one.picked.row.get_absolute_url(),
                "question_line": one.picked.question_line,
                "place": one.picked.place,
                "run_short": one.picked.row.run.short,
                "fingerprint": one.picked.row.fingerprint,
                "seq": one.receipt.seq if one.receipt else None,
                "words": _words(one) if one.receipt else one.why,
                "is_done": one.receipt is not None,
            }
            for one in results
        ],
        "left_out": shown.left_out,
        "unseen": shown.unseen,
        "done_count": len(done),
        "decision": (form.yes_label if given[VERDICT] else form.no_label)
        if form.is_approval
        else "Answered",
        **_way_back(request),
    }
    return render(request, "gates/bulk_done.html", page)


def _words(one: Result) -> str:
    assert one.receipt is not None
    following = one.receipt.next
    if following == "resumed":
        return "recorded, the run resumed"
    if isinstance(following, dict):
        return f"recorded, the run resumes at {following['resumesAt']}"
    return "recorded"


def _way_back(request: HttpRequest) -> dict[str, Any]:
    """The list from which the selection came."""
    place = request.POST.get("place", request.GET.get("place", ""))
    try:
        url = team_views.list_of(request, place)
    except NotVisible:
        place, url = "inbox", reverse("gates:inbox")
    return {"place": place, "list_url": url, "is_team": place != "inbox"}
