"""The files of the page: its own beside this module, and the product's styles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).parent / "page"
_STATIC: Final = Path(__file__).parents[3] / "static"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
# In the order in which the product's own pages load them.
STYLES: Final = (
    "app.css",
    "tokens.css",
    "base.css",
    "parts/shared.css",
    "parts/forms.css",
    "states.css",
)


@dataclass(frozen=True, slots=True)
class Asset:
    """Bytes and what they are."""

    content: bytes
    media_type: str


def asset(name: str) -> Asset | None:
    """The file of this name, if the page has one; `` is the page itself."""
    return _found().get(name)


@cache
def _found() -> dict[str, Asset]:
    found = {"styles.css": Asset(_styles(), _TYPES[".css"])}
    mark = _STATIC / "img" / "mark.svg"
    if mark.is_file():
        found["mark.svg"] = Asset(mark.read_bytes(), "image/svg+xml")
    for path in sorted(_PAGE.iterdir()):
        if path.suffix in _TYPES:
            name = "" if path.name == "index.html" else path.name
            found[name] = Asset(path.read_bytes(), _TYPES[path.suffix])
    return found


def _styles() -> bytes:
    """The product's styles as one file; where they are not shipped the page has its own only."""
    paths = [_STATIC / "css" / name for name in STYLES]
    return b"\n".join(path.read_bytes() for path in paths if path.is_file())
