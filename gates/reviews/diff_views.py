"""One file of a change, fetched by itself when a reader comes to it."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from gates import access
from gates.evidence.masking import shown_to
from gates.models import Response
from gates.receipts.sealed import need_unchanged
from gates.reviews import diffs
from gates.reviews.diff_rows import View
from runs.kernel.annotations import takes_annotations
from runs.people.visitors import caller


@never_cache
@login_required
@require_GET
def diff_file(request: HttpRequest, pk: UUID, index: int) -> HttpResponse:
    """Show the lines of a file of the question's change, as its page would."""
    who = caller(request)
    row = access.find(who, pk)
    shown = shown_to(who, row)
    # A masked input is another than that of the page which was kept.
    diff = diffs.kept_of(row) if shown is row else None
    if diff is None:
        need_unchanged(row)
        diff = diffs.diff_in(row, shown.input)
    answer = Response.objects.filter(request=row).order_by("seq").first()
    view: View = "split" if request.GET.get("view") == "split" else "unified"
    response = None if answer is None else answer.response
    file = None if diff is None else diffs.one_file(diff, index, view=view, response=response)
    if diff is None or file is None:
        raise access.NotVisible("There is no such file in this question.")
    commented = response is None and takes_annotations(row.response_schema)
    about = {"view": view, "commented": commented}
    return render(request, "gates/_diff_file.html", {"diff": about, "file": file, "pk": row.pk})
