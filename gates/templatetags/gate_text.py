"""The text of a question as safe HTML: the one place where a stranger's text becomes markup."""

from __future__ import annotations

from html import escape
from typing import Final
from urllib.parse import urlsplit

import nh3
from django import template
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from runs.plaintext import visible

register = template.Library()

MAX_CHARACTERS: Final = 50_000
# The parser looks from every bracket to the end of the text: more are shown as they were typed.
MAX_BRACKETS: Final = 2_000
_TAGS: Final = {
    "p", "br", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "hr",
    "h3", "h4", "h5", "h6", "a", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_markdown: Final = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
    ["table", "strikethrough"]
)
# A question's headings stand below the page's own.
_SIDES: Final = {"text-align:right": "at-end", "text-align:center": "at-middle"}
_LOWER: Final = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}


def to_html(text: str) -> str:
    """Render Markdown without raw HTML, then let only harmless tags and http(s) links through."""
    cut = visible(text[:MAX_CHARACTERS])
    if cut.count("[") > MAX_BRACKETS:
        raise ValueError("too many brackets")
    tokens = _markdown.parse(cut)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = _LOWER[token.tag]
        if token.type in ("th_open", "td_open"):
            # No page has inline styles, so a column's side is a class.
            token.attrs = {"class": _SIDES.get(str(token.attrGet("style")), "")}
        for inner in token.children or ():
            if inner.type == "image":
                # Nothing is loaded from elsewhere: a picture becomes its description.
                inner.type, inner.tag, inner.nesting = "text", "", 0
    html = _markdown.renderer.render(_with_hosts(tokens), _markdown.options, {})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        allowed_classes={cell: set(_SIDES.values()) for cell in ("th", "td")},
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer",
    )
    return clean + ("<p>(cut here)</p>" if len(text) > MAX_CHARACTERS else "")


def _with_hosts(tokens: list) -> list:  # type: ignore[type-arg]  # markdown-it's own token lists
    """Show after each link where it leads, since its words may say anything (design D28)."""
    from markdown_it.token import Token

    for token in tokens:
        if not token.children:
            continue
        shown = []
        host = ""
        for inner in token.children:
            if inner.type == "link_open":
                parts = urlsplit(str(inner.attrGet("href") or ""))
                host = parts.hostname or "" if parts.scheme in ("http", "https") else ""
            shown.append(inner)
            if inner.type == "link_close" and host:
                shown.append(Token("text", "", 0, content=f" ({host})"))
                host = ""
        token.children = shown
    return tokens


@register.filter
def question_markdown(text: str) -> SafeString:
    """Show the question as sanitised Markdown; whatever fails is shown as plain text."""
    try:
        return mark_safe(to_html(text))  # noqa: S308  cleaned by nh3 just above
    except (RecursionError, ValueError):
        return mark_safe(f"<pre>{escape(visible(text[:MAX_CHARACTERS]))}</pre>")  # noqa: S308  escaped here
