"""One file of a change, fetched by itself when a reader comes to it."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from gates import access, diffs
from gates.masking import shown_to
from gates.models import Response
from gates.review_form import ReviewForm, form_for
from gates.sealed import need_unchanged
from gates.views import caller


@never_cache
@login_required
@require_GET
def diff_file(request: HttpRequest, pk: UUID, index: int) -> HttpResponse:
    """Show the lines of a file of the question's change, as its page would."""
    who = caller(request)
    row = access.find(who, pk)
    need_unchanged(row)
    shown = shown_to(who, row).input
    diff = diffs.diff_in(row, shown)
    answer = Response.objects.filter(request=row).order_by("seq").first()
    view = request.GET.get("view", "")
    response = None if answer is None else answer.response
    file = None if diff is None else diffs.one_file(row, diff, index, view=view, response=response)
    if diff is None or file is None:
        raise access.NotVisible("There is no such file in this question.")
    form = form_for(row, shown=shown)
    commented = isinstance(form, ReviewForm) and form.takes_comments
    page = diffs.DiffPage(
        pk=row.pk,
        diff=diff,
        view="split" if view == "split" else "unified",
        files=[],
        commented=commented,
    )
    return render(request, "gates/_diff_file.html", {"diff": page, "file": file, "pk": row.pk})
