"""A page of a stranger's inside the page of a question: framed, without scripts or network."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET

from gates import access
from gates.evidence import files
from runs.access import run_or_404
from runs.artifacts.store import ArtifactChanged, ArtifactMissing
from runs.people.visitors import caller

# Even opened by itself the page is a sandbox: another origin, no script, nothing from elsewhere.
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)


@never_cache
@login_required
@require_GET
@xframe_options_sameorigin
def page(request: HttpRequest, pk: UUID, digest: str) -> HttpResponse:
    """An HTML file of the question's run, for the frame that shows it."""
    who = caller(request)
    row = access.find(who, pk)
    run = run_or_404(who, row.run_id)
    artifact = run.artifacts.filter(digest=digest).order_by("-seq").first()
    if artifact is None or files.kind_of(artifact) != "html":
        raise Http404
    if artifact.size > files.HTML_BYTES:
        raise Http404
    try:
        content = files.head_of(artifact, files.HTML_BYTES)
    except (ArtifactMissing, ArtifactChanged) as missing:
        raise Http404 from missing
    told = HttpResponse(content, content_type="text/html; charset=utf-8")
    told["Content-Security-Policy"] = POLICY
    told["X-Content-Type-Options"] = "nosniff"
    told["Referrer-Policy"] = "no-referrer"
    return told
