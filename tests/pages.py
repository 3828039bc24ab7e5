"""A page as a reader's program sees it: elements with their attributes and text, by id."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.http import HttpResponse
from django.test import Client

from runs.people.principals import Principal

_VOID = {"input", "meta", "link", "br", "img", "hr", "use", "path", "rect", "circle"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def get(self, name: str) -> str | None:
        return self.attributes.get(name)


class Page(HTMLParser):
    """All elements of a page in order; each one's text holds that of what is inside it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(made)
        if self._open:
            self._open[-1].children.append(made)
        if tag not in _VOID:
            self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, -1, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Elements of a tag whose attributes have these values; `class_` and `_` for `-`."""
        asked = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        return [
            one
            for one in self.elements
            if tag in ("", one.tag) and all(one.get(name) == value for name, value in asked.items())
        ]

    def one(self, tag: str = "", **wanted: str) -> Element:
        (found,) = self.all(tag, **wanted)
        return found

    def by_id(self, wanted: str) -> Element:
        return self.one(id=wanted)

    @property
    def targets(self) -> list[str]:
        """The places that a fragment brings up to date beside its own."""
        return [one.attributes["hx-target"] for one in self.all("hx-partial")]


def client_of(who: Principal, **options: Any) -> Client:
    """The browser of a person, signed in."""
    client = Client(**options)
    assert who.user is not None
    client.force_login(who.user)
    return client


def page_of(response: HttpResponse | Any) -> Page:
    return Page(response.content.decode())
