"""The page for whoever looks after the installation, and its one act."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from gates.notify import access as notify_access
from gates.notify import channels
from obversa_site.operations import access
from obversa_site.operations.page import page
from runs.people.visitors import caller


@never_cache
@login_required
@require_safe
def operations(request: HttpRequest) -> HttpResponse:
    """Show who works, what waits, and what does not go on by itself."""
    who = caller(request)
    access.need_see(who)
    return render(request, "operations/page.html", page(who, timezone.now()))


@login_required
@require_POST
def send_again(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Try a failed message once more, on the word of an operator."""
    who = caller(request)
    access.need_see(who)
    access.need_send_again(who)
    found = notify_access.delivery_or_404(who, uid)
    if channels.send_again(found, actor=who.actor, surface=who.surface):
        messages.success(request, "The message is on its way once more.")
    else:
        messages.warning(request, "This message has not failed, so it is not sent again.")
    return redirect("operations:operations")
