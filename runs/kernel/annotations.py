"""What people say about the lines of a change, and how it goes into an answer (gates.md G195-G197).

An annotation is `{anchor: {target, side, position}, body, author: {kind, id}, createdAt}`; the
answer of a review holds them as `feedback.annotations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from runs.kernel.diffs import Diff
from runs.kernel.interactions import APPROVED, DECISIONS, Answer, Interaction
from runs.kernel.jsonable import JSONValue

NAME: Final = "annotations"
MAX_ANNOTATIONS: Final = 500
MAX_BODY: Final = 4_000
MAX_PROMPT: Final = 200_000
_SIDES: Final = ("old", "new")
_ANCHOR: Final = frozenset({"target", "side", "position"})

SCHEMA: Final[Mapping[str, JSONValue]] = {
    "type": "array",
    "maxItems": MAX_ANNOTATIONS,
    "items": {
        "type": "object",
        "properties": {
            "anchor": {
                "type": "object",
                "properties": {
                    "target": {"type": "string"},
                    "side": {"type": "string", "enum": list(_SIDES)},
                    "position": {"type": "integer", "minimum": 1},
                },
                "required": ["target", "side", "position"],
                "additionalProperties": False,
            },
            "body": {"type": "string", "minLength": 1, "maxLength": MAX_BODY},
            "author": {"type": "object"},
            "createdAt": {"type": "string"},
        },
        "required": ["anchor", "body"],
    },
}
RESPONSE_SCHEMA: Final[Mapping[str, JSONValue]] = {
    "type": "object",
    "properties": {
        "feedback": {"type": "object", "properties": {NAME: SCHEMA}},
        "prompt": {"type": "string", "maxLength": MAX_PROMPT},
    },
    "required": ["feedback", "prompt"],
}


def line_comments(binding_id: str = "diff-review", *, answer: Answer | None = None) -> Interaction:
    """The binding of a review whose answer holds what people said about single lines."""
    return Interaction(binding_id, RESPONSE_SCHEMA, answer)


def takes_annotations(schema: Any) -> bool:
    """Whether an answer of this schema has room for annotations: it declares them."""
    for name in ("properties", "feedback", "properties", NAME):
        schema = schema.get(name) if isinstance(schema, Mapping) else None
    return isinstance(schema, Mapping) and schema.get("type") == "array"


def placed(
    given: Iterable[Any], diff: Diff, *, author: Mapping[str, JSONValue], at: str
) -> list[dict[str, JSONValue]]:
    """The annotations as they are kept: on lines of this diff, and by whoever sends them.

    One on no line of the diff, one with more in its anchor than a place and one that says nothing
    is dropped. Author and time are what they are, whatever the sender wrote there.
    """
    kept: list[dict[str, JSONValue]] = []
    for one in given:
        anchor = _anchor(one, diff)
        body = _body(one) if anchor is not None else ""
        if anchor is not None and body:
            kept.append({"anchor": anchor, "body": body, "author": dict(author), "createdAt": at})
    return kept


def _anchor(given: Any, diff: Diff) -> dict[str, JSONValue] | None:
    anchor = given.get("anchor") if isinstance(given, Mapping) else None
    if not isinstance(anchor, Mapping) or set(anchor) != _ANCHOR:
        return None
    target, side, position = anchor["target"], anchor["side"], anchor["position"]
    if isinstance(position, bool) or not isinstance(position, int) or side not in _SIDES:
        return None
    file = diff.file(target)
    if file is None or not file.has_line(side, position):
        return None
    return {"target": file.path, "side": side, "position": position}


def _body(given: Any) -> str:
    body = given.get("body")
    return body.strip()[:MAX_BODY].rstrip() if isinstance(body, str) else ""


def disagreement(decision: object, count: int, *, can_comment: bool = True) -> str | None:
    """Why a decision does not go with so many annotations; None when it does (G196)."""
    if count > MAX_ANNOTATIONS:
        return f"A review holds {MAX_ANNOTATIONS} comments at most, and this one has {count}."
    if decision == APPROVED and count:
        return "An approval holds no comments: take them out, or request changes."
    if decision in DECISIONS and decision != APPROVED and not count and can_comment:
        return "Say on at least one line what has to change, or approve."
    return None


def composed(note: str, annotations: Iterable[Mapping[str, Any]]) -> str:
    """The prompt of a review: what was said of the whole, then what was said of each line."""
    parts = [note.strip()] if note.strip() else []
    for one in annotations:
        anchor = one["anchor"]
        side = " (before the change)" if anchor["side"] == "old" else ""
        parts.append(f"{anchor['target']}:{anchor['position']}{side}: {one['body']}")
    return "\n\n".join(parts)[:MAX_PROMPT]
