"""The pages about channels, quiet hours and what was sent."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from gates import people_views
from gates.models import Channel
from gates.notify import access, channels, page
from gates.notify.channels import ChannelRefused
from gates.notify.forms import ChannelForm, QuietForm
from gates.teams import groups
from runs.people.visitors import caller
from runs.plaintext import visible


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def channel_add(request: HttpRequest, kind: str, team: int | None = None) -> HttpResponse:
    """Show the form of a new channel, and add it."""
    who = caller(request)
    group = None if team is None else groups.find_team(who, team)
    access.need_add(who, kind, group)
    asks = not (kind == Channel.Kind.MAIL and group is None)
    if request.method != "POST":
        form = ChannelForm(kind, with_address=asks, initial={"name": _usual_name(kind)})
        return _add_page(request, form, group)
    form = ChannelForm(kind, request.POST, with_address=asks)
    if form.is_valid():
        try:
            made = channels.add(
                kind,
                actor=who.actor,
                user=who.user if group is None else None,
                team=group,
                **form.cleaned_data,
            )
        except ChannelRefused as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, str(refusal))
        else:
            if made.secret:
                return _channel_page(request, made, secret=made.secret)
            return redirect(_home(made))
    return _add_page(request, form, group, status=422)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def channel(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one channel, and change what it is told."""
    found = access.channel_or_404(caller(request), pk)
    if request.method != "POST":
        return _channel_page(request, found)
    form = ChannelForm(found.kind, request.POST, with_address=False)
    if not form.is_valid():
        return _channel_page(request, found, form=form, status=422)
    given = form.cleaned_data
    channels.change(
        found, name=given["name"], wants=given["wants"], digest=given.get("digest", "off")
    )
    return redirect(_home(found))


@login_required
@require_POST
def channel_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a test message there."""
    found = access.channel_or_404(caller(request), pk)
    channels.test(found)
    messages.success(request, f"A test is on its way to {visible(found.name)}.")
    return redirect("gates:channel", pk=pk)


@never_cache
@login_required
@require_POST
def channel_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a new secret for a webhook and show it this once."""
    found = access.channel_or_404(caller(request), pk)
    if found.kind != Channel.Kind.WEBHOOK:
        return redirect("gates:channel", pk=pk)
    return _channel_page(request, found, secret=channels.renew_secret(found))


@login_required
@require_POST
def channel_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """End the channel."""
    found = access.channel_or_404(caller(request), pk)
    channels.remove(found)
    return redirect(_home(found))


@never_cache
@login_required
@require_POST
def quiet_hours(request: HttpRequest) -> HttpResponse:
    """Keep the reader's quiet hours and zone."""
    who = caller(request)
    form = QuietForm(request.POST)
    if not form.is_valid() or who.user is None:
        return people_views.settings_page(request, quiet_form=form, status=422)
    channels.prefer(who.user, **form.cleaned_data)
    return redirect(f"{reverse('gates:settings')}#quiet-title")


@never_cache
@login_required
@require_GET
def delivery_list(request: HttpRequest) -> HttpResponse:
    """Show what was sent to the reader; to everybody, for operators."""
    given = request.GET.get("before", "")
    before = int(given) if given.isascii() and given.isdigit() and len(given) <= 18 else None
    return render(request, "gates/deliveries.html", page.log_page(caller(request), before))


@login_required
@require_POST
def delivery_again(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Try a failed message once more."""
    who = caller(request)
    found = access.delivery_or_404(who, uid)
    if not channels.send_again(found, actor=who.actor, surface=who.surface):
        messages.warning(request, "This message has not failed, so it is not sent again.")
    return redirect("gates:delivery-list")


def _add_page(
    request: HttpRequest, form: ChannelForm, team: Group | None, status: int = 200
) -> HttpResponse:
    back = reverse("gates:settings") if team is None else reverse("gates:team", args=[team.pk])
    shown: dict[str, Any] = {
        "form": form,
        "title": f"New channel: {form.kind.label}",
        "back_url": back,
        "back": "Settings" if team is None else visible(team.name),
        "own_mail": visible(getattr(request.user, "email", ""))
        if form.kind == Channel.Kind.MAIL and team is None
        else "",
        "save": "Add the channel",
    }
    return render(request, "gates/channel.html", shown, status=status)


def _channel_page(
    request: HttpRequest,
    found: Channel,
    *,
    form: ChannelForm | None = None,
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    team = found.team
    shown: dict[str, Any] = {
        "form": form or ChannelForm.of(found),
        "title": visible(found.name),
        "channel": {
            "kind": found.get_kind_display(),
            "address": visible(found.shown_address),
            "is_webhook": found.kind == Channel.Kind.WEBHOOK,
            "test_url": reverse("gates:channel-test", args=[found.pk]),
            "secret_url": reverse("gates:channel-secret", args=[found.pk]),
            "remove_url": reverse("gates:channel-remove", args=[found.pk]),
        },
        "action": reverse("gates:channel", args=[found.pk]),
        "secret": secret,
        "back_url": _home(found),
        "back": "Settings" if team is None else visible(team.name),
        "save": "Save",
    }
    return render(request, "gates/channel.html", shown, status=status)


def _home(found: Channel) -> str:
    if found.team_id is None:
        return reverse("gates:settings")
    return reverse("gates:team", args=[found.team_id])


def _usual_name(kind: str) -> str:
    return {"mail": "Mail", "service": "Chat"}.get(kind, "Webhook")
