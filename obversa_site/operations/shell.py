"""The place in the frame of every page, for those who may go there."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from obversa_site.operations import access
from runs.people.visitors import caller


def place(request: HttpRequest) -> dict[str, Any]:
    """Where the installation is looked after; nothing for everybody else."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated or not access.may_see(caller(request)):
        return {}
    return {"operations_url": reverse("operations:operations")}
