"""Who looks at every page, and what is said of each answer that comes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final

from django.test import Client

from gates import keys
from tests import factories
from tests.site.walk import BODIES, World, addresses

LOOKS: Final = ("runs.view_run", "gates.view_request")
ROLES: Final = (
    "visitor", "cyd", "ada", "looker", "operator", "staff", "root", "key that reads", "key of ada",
)  # fmt: skip
# It answers as long as its run goes on; tests/site/pages/test_no_secrets.py reads one that ends.
ENDLESS: Final = frozenset({"api/v1/runs/{runs}/stream"})


@dataclass
class Looker:
    """A client that comes in as one of ROLES."""

    role: str
    client: Client
    headers: dict[str, str]

    @classmethod
    def called(cls, role: str, *, csrf: bool = False, secure: bool = False) -> Looker:
        client = Client(enforce_csrf_checks=csrf, raise_request_exception=False)
        if role.startswith("key"):
            user = factories.user("ada") if role == "key of ada" else None
            scopes = ["read"] if user is None else ["read", "start", "claim", "answer", "operate"]
            _, text = keys.create_key(role.replace(" ", "-"), scopes, user)
            return cls(role, client, {"Authorization": f"Bearer {text}"})
        if role != "visitor":
            client.force_login(_person(role))
        return cls(role, client, {})

    def ask(self, method: str, path: str, route: str = "", **extra: Any) -> Any:
        if method == "post" and route.startswith("api/"):
            extra = {"data": BODIES.get(route, {}), "content_type": "application/json"} | extra
        headers = {**self.headers, **extra.pop("headers", {})}
        return getattr(self.client, method)(path, headers=headers, **extra)

    def everything(
        self, world: World, method: str = "get", *, about: str = ""
    ) -> Iterator[tuple[str, str, Any]]:
        """Every address of the site with what it answers; new ones need a value in the walk.

        With `about` only the addresses that hold one of these words.
        """
        wanted = about.split()
        for route, path in addresses(world):
            if route == "sign-out/" or (route in ENDLESS and method == "get"):
                continue
            if wanted and not any(word in route for word in wanted):
                continue
            yield route, path, self.ask(method, path, route)


def _person(role: str) -> Any:
    match role:
        case "looker":
            return factories.user("looker", perms=LOOKS)
        case "operator":
            return factories.user("operator", perms=[*LOOKS, "gates.change_request"])
        case "staff":
            return factories.user("staff", is_staff=True, perms=LOOKS)
        case "root":
            return factories.user("root", is_staff=True, is_superuser=True)
    return factories.user(role)


def said(response: Any) -> str:
    """The whole answer as text: its headers, its cookies and its body."""
    head = [f"{name}: {value}" for name, value in response.headers.items()]
    cookies = [morsel.OutputString() for morsel in response.cookies.values()]
    return "\n".join([*head, *cookies, response.getvalue().decode(errors="replace")])


_DIRECTIVE: Final = re.compile(r"([a-z-]+)(?: (.*))?")


def policy_of(response: Any) -> dict[str, str]:
    """The Content-Security-Policy by directive."""
    parts = response.headers.get("Content-Security-Policy", "").split(";")
    found = [_DIRECTIVE.fullmatch(part.strip()) for part in parts if part.strip()]
    return {match[1]: match[2] or "" for match in found if match}


class Page(HTMLParser):
    """What of a page could run, load or lead away."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.forms_without_token = 0
        self._form: dict[str, str | None] | None = None
        self._has_token = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._runs(tag, given)
        self._leads_away(tag, given)
        if tag == "form":
            self._form, self._has_token = given, False
        if tag == "input" and given.get("name") == "csrfmiddlewaretoken":
            self._has_token = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "form" and self._form is not None:
            if (self._form.get("method") or "get").lower() == "post" and not self._has_token:
                self.faults.append(f"a form without its token: {self._form.get('action')}")
            self._form = None

    def _runs(self, tag: str, given: dict[str, str | None]) -> None:
        if tag == "script" and not given.get("src") and given.get("type") != "application/json":
            self.faults.append("a script inside the page")
        if tag == "style" or "style" in given:
            self.faults.append(f"a style inside the page: <{tag}>")
        self.faults += [f"{name} on <{tag}>" for name in given if name.startswith("on")]
        for name in ("href", "src", "action", "formaction"):
            value = (given.get(name) or "").strip().lower()
            if value.startswith(("javascript:", "vbscript:", "data:text")):
                self.faults.append(f"{name}={value[:40]}")

    def _leads_away(self, tag: str, given: dict[str, str | None]) -> None:
        outside = (given.get("href") or "").startswith(("http://", "https://", "//"))
        if tag == "a" and outside and "noopener" not in (given.get("rel") or ""):
            self.faults.append(f"a link outside without noopener: {given.get('href')}")
        source = given.get("src") or (given.get("href") if tag == "link" else "") or ""
        if source.startswith(("http://", "https://", "//")):
            self.faults.append(f"<{tag}> loads from elsewhere: {source}")
