"""Who calls the API: a signed-in person by session, or a program by key.

A request with an Authorization header is judged by it alone, whatever cookies it carries. So a key
never needs a CSRF token, and a cookie never lends its rights to a wrong key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from django.http import HttpRequest
from ninja.security.base import SecuritySchema
from ninja.utils import check_csrf
from structlog.contextvars import bind_contextvars

from gates.keys import find_key
from gates.principals import Principal, principal_for_key


class Unauthenticated(Exception):
    """Nobody is signed in, or the key opens nothing."""

    code = "unauthenticated"


class CsrfMissing(Exception):
    """A session writes only with the token of a page of this site."""

    code = "csrf"


class Bearer:
    """A key in the Authorization header."""

    openapi_security_schema: Final = SecuritySchema(
        "http", scheme="bearer", description="A key from `manage.py create_key`."
    )

    def __call__(self, request: HttpRequest) -> Principal | None:
        """The key's caller; None without the header, refused when the key opens nothing."""
        given = request.headers.get("Authorization")
        if given is None:
            return None
        scheme, _, text = given.strip().partition(" ")
        key = find_key(text.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise Unauthenticated(
                "The Authorization header holds no key that works here. It may have ended or been "
                "revoked; send `Authorization: Bearer KEY`."
            )
        return _known(principal_for_key(key))


class Session:
    """The cookie of a signed-in person; writing takes the CSRF token as well."""

    openapi_security_schema: Final = SecuritySchema(
        "apiKey",
        name="sessionid",
        **{"in": "cookie"},
        description="The cookie of a signed-in person. Writing takes an `X-CSRFToken` header too.",
    )

    def __call__(self, request: HttpRequest) -> Principal | None:
        """The person's caller; None for nobody. Asked after Bearer, so there is no header here."""
        if not request.user.is_authenticated:
            return None
        if check_csrf(request) is not None:
            raise CsrfMissing("Send the CSRF token of this session in the X-CSRFToken header.")
        return _known(Principal.for_user(request.user, surface="api"))


def _known(who: Principal) -> Principal:
    """Name the caller in every line of the log from now on."""
    bind_contextvars(actor=who.actor)
    return who


AUTH: Final[Sequence[Callable[[HttpRequest], Principal | None]]] = [Bearer(), Session()]
