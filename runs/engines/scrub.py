"""Takes secrets out of a command's output before any of it is recorded (runs.md R227).

It looks wider than the kernel's `redact`, which reads a person's note and whose shapes it shares:
tool tokens, keys in PEM form, logins in addresses, and values this process knows to be secret.
Every pattern is bounded or anchored, so that the time stays linear on a stream of many megabytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from runs.kernel.redact import KEY_SHAPES, REDACTED, SHAPES, SHORTEST_SECRET

_SECRET_WORDS: Final = frozenset(
    {
        *(
            "TOKEN",
            "TOKENS",
            "SECRET",
            "SECRETS",
            "PASSWORD",
            "PASSWD",
            "PASS",
            "PASSPHRASE",
            "PWD",
        ),
        *("KEY", "KEYS", "APIKEY", "CREDENTIAL", "CREDENTIALS", "AUTH", "AUTHORIZATION", "DSN"),
    }
)
# A name that ends so says where a secret is kept; the place itself is none.
_PLACE_WORDS: Final = frozenset({"FILE", "PATH", "DIR", "SOCK", "SOCKET", "HOME"})
# A shell's own word for where it stands; as a part of a longer name it is a password.
_DIRECTORIES: Final = frozenset({"PWD", "OLDPWD"})
_NAME_PART: Final = re.compile(r"[A-Z0-9]+")

_PEM: Final = re.compile(
    r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
_LOGIN_HEADER: Final = (
    r"(?i)(?<![A-Za-z0-9])(?:bearer|basic)[ \t]{1,8}"
    r"(?=[^\s]{0,64}[0-9])[A-Za-z0-9._~+/=-]{16,}"
)
_TOOL_KEY: Final = (
    r"(?<![A-Za-z0-9])(?:gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-)[A-Za-z0-9_-]{10,}"
)
_URL_LOGIN: Final = r"(?i)\b([a-z][a-z0-9+.-]{0,31}://)[^\s/@:]{0,256}:[^\s/@]{1,1024}@"

# What a line must hold, in small letters, before a shape is worth looking for in it; the shape;
# and what takes its place.
_TOKENS: Final = tuple(
    (hints, re.compile(pattern), instead)
    for hints, pattern, instead in (
        (("://",), _URL_LOGIN, rf"\1{REDACTED}@"),
        (("gh", "glpat-", "xox"), _TOOL_KEY, REDACTED),
        (("akia", "asia"), r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])", REDACTED),
        (("eyj",), r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", REDACTED),
        (("bearer", "basic"), _LOGIN_HEADER, REDACTED),
    )
)


class _Shapes(NamedTuple):
    """Shapes to look for, and a pattern of all their hints at once: most texts hold none."""

    hint: re.Pattern[str]
    each: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...]


def _shapes(more: Iterable[tuple[tuple[str, ...], re.Pattern[str]]]) -> _Shapes:
    each = (*_TOKENS, *((hints, shape, REDACTED) for hints, shape in more))
    hints = sorted({hint for hints, _, _ in each for hint in hints})
    return _Shapes(re.compile("|".join(map(re.escape, hints))), each)


_SHAPES: Final = _shapes(SHAPES)
# What a step hands on is its own: an address in it is a fact that the next step may need.
_KEYS: Final = _shapes(KEY_SHAPES)


@lru_cache(maxsize=4096)
def looks_secret(name: str) -> bool:
    """Whether an environment variable's name says that its value is a secret."""
    if name.upper() in _DIRECTORIES:
        return False
    parts: list[str] = _NAME_PART.findall(name.upper())
    return bool(_SECRET_WORDS.intersection(parts)) and parts[-1] not in _PLACE_WORDS


def secret_values(
    environment: Mapping[str, str], injected: Mapping[str, str] | None = None
) -> list[str]:
    """The values to hide: secret by name in the environment, and every injected one."""
    if environment is os.environ:
        named = _of_this_process()
    else:
        named = [value for name, value in environment.items() if looks_secret(name)]
    return [
        value
        for value in {*named, *(injected or {}).values()}
        if len(value.strip()) >= SHORTEST_SECRET
    ]


# What the environment was when it was read last, and the secret values in it.
_read: list[tuple[Any, list[str]]] = [(None, [])]


def _of_this_process() -> list[str]:
    """The same of os.environ, which decodes each variable anew whenever it is read.

    Every step asks, for a step may set one; so the dict beneath it is compared with what it was.
    """
    held = getattr(os.environ, "_data", None)
    before, named = _read[0]
    if held is None or before != held:
        before = None if held is None else dict(held)
        named = [value for name, value in os.environ.items() if looks_secret(name)]
        # Changed meanwhile, it is read again the next time.
        _read[0] = (before, named)
    return named


class Scrubber:
    """Takes the given values, and everything shaped like a key, out of what a step records."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known = _alternatives(values)

    def text(self, text: str) -> str:
        """The text without secrets; addresses stay."""
        return _scrubbed(text, self._known, _KEYS)

    def json(self, value: Any) -> Any:
        """The same for every text and every key inside; what is no JSON is left as it is."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.json(key): self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value


def scrub(text: str, values: Iterable[str] = ()) -> str:
    """The text with the given values, secrets and addresses replaced."""
    return _scrubbed(text, _alternatives(values), _SHAPES)


def _alternatives(values: Iterable[str]) -> re.Pattern[str] | None:
    known = frozenset(value for value in values if value)
    return _pattern(known) if known else None


@lru_cache(maxsize=64)
def _pattern(known: frozenset[str]) -> re.Pattern[str]:
    # Longest first: a secret that begins with another one must not leave its end behind.
    longest_first = sorted(known, key=lambda item: (-len(item), item))
    return re.compile("|".join(map(re.escape, longest_first)))


def _scrubbed(text: str, known: re.Pattern[str] | None, shapes: _Shapes) -> str:
    if known is not None:
        text = known.sub(REDACTED, text)
    if "-----BEGIN" in text:
        text = _PEM.sub(REDACTED, text)
    if not shapes.hint.search(text.lower()):
        return text
    return "\n".join(_scrub_line(line, shapes) for line in text.split("\n"))


def _scrub_line(line: str, shapes: _Shapes) -> str:
    """No other shape runs over the end of a line, and most lines hold no hint of one."""
    small = line.lower()
    for hints, shape, instead in shapes.each:
        if any(hint in small for hint in hints):
            line = shape.sub(instead, line)
    return line
