"""Coming in and going out: by password, or by a link that works once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import (
    url_has_allowed_host_and_scheme,
    urlsafe_base64_decode,
    urlsafe_base64_encode,
)
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from obversa_site.throttle import count_wrong_code, has_to_wait, too_many_codes

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

PASSWORD_BACKEND = "obversa_site.throttle.PatientBackend"  # noqa: S105  a dotted path


class LinkTokens(PasswordResetTokenGenerator):
    """Tokens that die with the person's next sign-in, and after an hour at the latest."""

    key_salt = "obversa_site.accounts.LinkTokens"

    def _make_hash_value(self, user: AbstractBaseUser, timestamp: int) -> str:
        # Django cuts the time of the last sign-in to seconds, which would let a link made and
        # used within one second work twice.
        seen = user.last_login.isoformat() if user.last_login else "never"
        return f"{user.pk}|{user.password}|{user.is_active}|{seen}|{timestamp}"


link_tokens = LinkTokens()


def sign_in_code(user: User) -> str:
    """Return what signs this person in once within the next hour."""
    return f"{urlsafe_base64_encode(force_bytes(user.pk))}.{link_tokens.make_token(user)}"


def sign_in_link(user: User) -> str:
    """Return an address that signs this person in once within the next hour.

    The code stands behind the `#`, which browsers keep to themselves: it comes into no log of a
    server or proxy and into no Referer.
    """
    return f"{settings.OBVERSA_BASE_URL}{reverse('sign-in-link')}#{sign_in_code(user)}"


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in by name and password, then go where the person was going."""
    wanted = _safe_next(request)
    form = AuthenticationForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        login(request, form.get_user())
        return redirect(wanted)
    if request.user.is_authenticated:
        return redirect(wanted)
    waits = form.is_bound and has_to_wait(request, request.POST.get("username"))
    status = 429 if waits else 422 if form.is_bound else 200
    page = {"form": form, "next": wanted, "waits": waits}
    return render(request, "accounts/sign_in.html", page, status=status)


@sensitive_post_parameters("code")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_by_link(request: HttpRequest) -> HttpResponse:
    """Take a link's code, show whom it is for, and sign that person in on the button.

    The page's script takes the code out of the address; without scripts it is pasted. The button
    lets nobody be signed in as somebody else unawares.
    """
    if request.method != "POST":
        return render(request, "accounts/sign_in_link.html")
    if too_many_codes(request):
        return render(request, "accounts/sign_in_link.html", {"waits": True}, status=429)
    code = request.POST.get("code", "").strip().rpartition("#")[2]
    user = _person(code)
    if user is None:
        count_wrong_code(request)
        return _link_is_dead(request)
    if "confirmed" not in request.POST:
        label = user.get_full_name() or user.get_username()
        return render(request, "accounts/sign_in_link.html", {"person_label": label, "code": code})
    # Two presses at once: the row count says which of them used the link.
    rows = User.objects.filter(pk=user.pk, last_login=user.last_login)
    if not rows.update(last_login=timezone.now()):
        return _link_is_dead(request)
    login(request, user, backend=PASSWORD_BACKEND)
    return redirect(settings.LOGIN_REDIRECT_URL)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out and show the way back in."""
    logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


def _link_is_dead(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/sign_in_link.html", {"expired": True}, status=410)


def _person(code: str) -> User | None:
    """Whom the code signs in now, if anybody."""
    coded, _, token = code.partition(".")
    try:
        user = User.objects.get(pk=int(urlsafe_base64_decode(coded)), is_active=True)
    except (ValueError, OverflowError, User.DoesNotExist):
        return None
    return user if link_tokens.check_token(user, token) else None


def _safe_next(request: HttpRequest) -> str:
    wanted = request.POST.get("next") or request.GET.get("next", "")
    here = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if here else resolve_url(settings.LOGIN_REDIRECT_URL)
