"""What the frame around every page shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from gates import queries
from runs.people.visitors import caller


def inbox(request: HttpRequest) -> dict[str, Any]:
    """How much waits for this person, for the rail and the page's title."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or request.path.startswith("/admin/"):
        return {}
    counts = queries.inbox_counts(caller(request))
    return {"inbox_count": counts["unclaimed"] + counts["mine"]}
