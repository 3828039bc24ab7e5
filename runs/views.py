"""The pages of runs and workflows: find, do one thing, show one template."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs import access, catalogue, fragments, reruns, services
from runs.artifacts import downloads
from runs.errors import IdempotencyConflict, ParamsRefused, RunsError
from runs.inputs.forms import SchemaForm
from runs.pages import archived
from runs.pages.run_list import EMPTY, TABS, run_rows
from runs.people.visitors import caller
from runs.plaintext import visible


@never_cache
@login_required
@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    """Show the runs this person may see, filtered by the address."""
    given = {
        key: request.GET.get(key, "").replace("\0", "").strip()[:200]
        for key in ("tab", "q", "workflow", "before")
    }
    tab = given["tab"] if given["tab"] in TABS else "all"
    rows, before = run_rows(
        caller(request), tab=tab, q=given["q"], workflow=given["workflow"], before=given["before"]
    )
    here = reverse("runs:run-list")
    keep = {key: given[key] for key in ("q", "workflow") if given[key]}

    def url(**changes: str) -> str:
        query = {"tab": tab, **keep, **changes}
        return f"{here}?{urlencode({key: value for key, value in query.items() if value})}"

    filters = [
        {"label": f"{key}: {given[key]}", "remove_url": url(**{key: ""})}
        for key in keep
        if key != "q"
    ]
    page = {
        "rows": rows,
        "tab": tab,
        "empty": EMPTY.get(tab, ""),
        "q": given["q"],
        "tabs": [
            {"key": key, "label": label, "count": None, "url": url(tab=key), "active": key == tab}
            for key, (label, _) in TABS.items()
        ],
        "filters": filters,
        "next_url": url(before=before) if before else None,
        "list_url": here,
        "workflows_url": reverse("runs:workflow-list"),
    }
    return render(request, "runs/run_list.html", page)


@never_cache
@login_required
@require_GET
def run(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show one run, live."""
    who = caller(request)
    found = access.run_or_404(who, pk)
    if found.archived_at is not None:
        return render(request, "runs/archived.html", archived.archived_page(who, found))
    return render(request, "runs/run.html", fragments.run_page(who, found, _from(request)))


def _from(request: HttpRequest) -> int | None:
    """`?before=N` reads the record further back."""
    text = request.GET.get("before", "")
    return int(text) if text.isdecimal() and len(text) < 16 else None


@login_required
@require_POST
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Stop a run."""
    return _operate(request, pk, services.cancel_run, "The run is cancelled.")


@login_required
@require_POST
def resume(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Let a stopped run go on."""
    return _operate(request, pk, services.resume_run, "The run goes on.")


@login_required
@require_POST
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Try at once what waits for its next try."""
    return _operate(request, pk, services.retry_now, "It is tried again now.")


@login_required
@require_POST
def rerun(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Start a finished run again, whole or from a step, and go to the new run."""
    who = caller(request)
    found = access.run_or_404(who, pk)
    access.startable_or_404(who, found.workflow)
    try:
        made = reruns.rerun(
            found.pk,
            actor=who.actor,
            surface=who.surface,
            from_step=request.POST.get("from_step") or None,
            keep_answers=request.POST.get("answers") != "no",
            once=request.POST.get("once", "")[:100],
        )
    except RunsError as refusal:
        messages.error(request, str(refusal))
        return redirect(found)
    messages.success(request, "A new run was started.")
    return redirect(made)


def _operate(request: HttpRequest, pk: UUID, service: Any, done: str) -> HttpResponse:
    who = caller(request)
    found = access.run_or_404(who, pk)
    access.need_operate(who, found)
    try:
        service(found.pk, actor=who.actor, surface=who.surface)
    except RunsError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, done)
    return redirect(found)


@never_cache
@login_required
@require_GET
def artifact(request: HttpRequest, pk: UUID, digest: str) -> HttpResponseBase:
    """The bytes as a download; never shown as a page of this site."""
    found = access.run_or_404(caller(request), pk)
    row = found.artifacts.filter(digest=digest).order_by("-seq").first()
    if row is None:
        raise Http404
    return downloads.answer(request, row)


@never_cache
@login_required
@require_GET
def workflow_list(request: HttpRequest) -> HttpResponse:
    """Show what can be started here."""
    page = {"workflows": catalogue.workflow_rows(caller(request))}
    return render(request, "runs/workflows.html", page)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def start(request: HttpRequest, name: str) -> HttpResponse:
    """Show the form of a workflow, and start it."""
    who = caller(request)
    workflow = access.startable_or_404(who, name)
    once = request.POST.get("once", "")[:100] or fragments.fresh_key()
    form = SchemaForm(workflow.params_schema, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.start_run(
                workflow.name,
                form.response(),
                actor=who.actor,
                surface=who.surface,
                idempotency_key=once,
            )
        except ParamsRefused as refusal:
            form.add_faults(refusal.fields)
        except IdempotencyConflict:
            once = fragments.fresh_key()
            form.add_error(
                None, "This form started a run already, with other values. Start again for another."
            )
        except RunsError as refusal:
            form.add_error(None, str(refusal))
        else:
            return redirect(made)
    page = {
        "workflow": {
            "name": workflow.name,
            "title": visible(workflow.title),
            "description": visible(workflow.description),
            "start_url": reverse("runs:start", args=[workflow.name]),
        },
        "form": form,
        "once": once,
    }
    return render(request, "runs/start.html", page, status=422 if form.is_bound else 200)
