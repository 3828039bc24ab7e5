"""JSON as this product means it: one canonical text and one digest."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, cast

import rfc8785

from runs.kernel.frozen import (
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    FrozenDict,
    FrozenList,
    JSONValue,
    JsonValueError,
    frozen_object,
    snapshot,
    thaw,
    too_deep,
)
from runs.kernel.plain import in_order, is_plain

__all__ = [
    "MAX_DEPTH",
    "MAX_SAFE_INTEGER",
    "FrozenDict",
    "FrozenList",
    "JSONValue",
    "JsonValueError",
    "canonical_json",
    "digest_hex",
    "frozen_object",
    "json_equal",
    "parse_json",
    "sha256_bytes",
    "sha256_of",
    "snapshot",
    "thaw",
]

# A double ends at 309 digits. Longer text is not worth turning into an integer first.
_MAX_INTEGER_TEXT = 400


def canonical_json(value: object) -> str:
    """The one text of a value: equal values, equal text, on every machine."""
    if is_plain(value, MAX_DEPTH):
        return in_order(value)
    return _by_the_rules(value)


def _by_the_rules(value: object) -> str:
    """The canonical text of any value, and the refusal of what has none."""
    frozen = snapshot(value)
    try:
        return rfc8785.dumps(cast(Any, frozen)).decode()
    except rfc8785.IntegerDomainError:
        return rfc8785.dumps(_large_integers_as_doubles(frozen)).decode()


def digest_hex(value: object) -> str:
    """The SHA-256 of the canonical text, as 64 lowercase hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def sha256_of(value: object) -> str:
    """The digest of a JSON value, written `sha256:<hex>`."""
    return f"sha256:{digest_hex(value)}"


def sha256_bytes(content: bytes) -> str:
    """The digest of raw bytes, written `sha256:<hex>`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def json_equal(left: object, right: object) -> bool:
    """Whether two values are the same JSON: `1` is `1.0`, and `true` is neither."""
    return canonical_json(left) == canonical_json(right)


def parse_json(text: str | bytes, *, max_depth: int = MAX_DEPTH) -> JSONValue:
    """Read JSON strictly: what canonical_json would refuse is refused here, with its path."""
    if isinstance(text, bytes | bytearray | memoryview):
        try:
            text = str(text, "utf-8")
        except UnicodeDecodeError as error:
            raise JsonValueError(f"the text is not UTF-8 at byte {error.start}") from error
    if text.startswith("\ufeff"):
        raise JsonValueError("the text starts with a byte order mark")
    try:
        value = json.loads(
            text,
            parse_int=_wire_integer,
            # Read as a number that is not finite, so that the check below can name its path.
            parse_constant=lambda _name: math.nan,
            object_pairs_hook=_without_repeats,
        )
    except RecursionError as error:
        raise JsonValueError(too_deep(max_depth)) from error
    except json.JSONDecodeError as error:
        raise JsonValueError(f"the text is not JSON ({error.msg} at {error.pos})") from error
    snapshot(value, max_depth=max_depth)
    return cast(JSONValue, value)


def _wire_integer(digits: str) -> int | float:
    if len(digits) > _MAX_INTEGER_TEXT:
        return math.inf
    number = int(digits)
    # A double above 2^53 may be written as digits it does not hold exactly, such as
    # 44030096935539630. Those digits are its one canonical text, so they are that double.
    if MAX_SAFE_INTEGER < abs(number) < 10**21:
        double = float(number)
        if int(double) != number and canonical_json(double) == digits:
            return double
    return number


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonValueError(f"the key {_repeated(pairs)!a} appears twice in one object")
    return members


def _repeated(pairs: list[tuple[str, object]]) -> str:
    """The first name that comes again, in one walk: a body may hold some 200,000 names."""
    last = {name: index for index, (name, _) in enumerate(pairs)}
    return next(name for index, (name, _) in enumerate(pairs) if last[name] > index)


def _large_integers_as_doubles(value: JSONValue) -> Any:
    if isinstance(value, dict):
        return {key: _large_integers_as_doubles(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_large_integers_as_doubles(item) for item in value]
    if isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
        return float(value)
    return value
