"""Evidence that a step leaves: a page, a picture, a text, a table or data (runs.md R65-R67)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, Final

from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.events import EventKind
from runs.kernel.graph import LeafShape
from runs.kernel.jsonable import JSONValue, JsonValueError, snapshot
from runs.kernel.outcomes import Outcome, passing
from runs.kernel.sources import code_digest
from runs.shapes.job import Job, Leaf

KINDS: Final = ("html", "image", "markdown", "table", "json")
_TEXTS: Final = {"title": "title", "description": "description", "mediaType": "media_type"}
_KEYS: Final = frozenset({"kind", "path", "data", "meta", *_TEXTS, *_TEXTS.values()})
_MEDIA: Final = {
    ".html": "text/html",
    ".htm": "text/html",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
}


def prove(name: str, producer: Callable[[Any], Any]) -> Job:
    """A step that records evidence; `producer(ctx)` says what it is.

    It returns `{kind, path | data, title?, description?, media_type?, meta?}`: the kind is one of
    html, image, markdown, table and json, a relative path lies in the workspace, data and meta are
    JSON. The bytes of a file are kept with the run. Anything else fails the step with VALIDATION.
    """
    if not isinstance(name, str) or not name:
        raise DeclarationError("a proof needs a name.")
    if not callable(producer):
        raise DeclarationError(f"prove({name!r}) takes a function of ctx.")
    shape = LeafShape(kind="prove", label=name, code=code_digest(producer))
    return Leaf(shape, lambda ctx: _proved(ctx, name, producer))


def _proved(ctx: Any, name: str, producer: Callable[[Any], Any]) -> Outcome:
    try:
        artifact = _artifact(ctx, name, ctx.call(producer))
    except Exception as raised:
        if isinstance(raised, LoopError) and raised.code in ("ABORTED", "VALIDATION"):
            raise
        text = f"the proof {name!r} could not be made: {str(raised) or type(raised).__name__}"
        raise LoopError("VALIDATION", text, phase="body", cause=raised) from raised
    ctx.emit(EventKind.PROOF, name=name, artifact=artifact)
    return passing(str(artifact.get("title") or name), {"proof": artifact})


def _artifact(ctx: Any, name: str, given: Any) -> dict[str, JSONValue]:
    if not isinstance(given, Mapping):
        raise _refused(name, f"is a {type(given).__name__}, not a mapping")
    if unknown := sorted(map(str, set(given) - _KEYS)):
        raise _refused(name, f"has unknown keys: {', '.join(unknown)}")
    if given.get("kind") not in KINDS:
        raise _refused(name, f"has the kind {given.get('kind')!r}, none of {', '.join(KINDS)}")
    artifact: dict[str, JSONValue] = {"kind": given["kind"]}
    for key, other in _TEXTS.items():
        text = given.get(key, given.get(other))
        if text is not None:
            if not isinstance(text, str):
                raise _refused(name, f"has a {key} that is no text")
            artifact[key] = text
    if given.get("meta") is not None:
        artifact["meta"] = _json(name, "meta", given["meta"])
    if (given.get("path") is None) == ("data" not in given):
        raise _refused(name, "has not exactly one of path and data")
    if "data" in given:
        return artifact | {"data": _json(name, "data", given["data"])}
    return artifact | _kept(ctx, name, given["path"], str(artifact.get("mediaType") or ""))


def _json(name: str, part: str, value: Any) -> JSONValue:
    try:
        return snapshot(value)
    except JsonValueError as error:
        raise _refused(name, f"has a {part} that is no JSON: {error}") from error


def _kept(ctx: Any, name: str, path: Any, media_type: str) -> dict[str, JSONValue]:
    """The file's own bytes, kept with the run, so that they can be shown when it is over."""
    if not isinstance(path, str | PurePath):
        raise _refused(name, "has a path that is no path")
    found: Path | None = ctx.find_file(path)
    if found is None:
        raise _refused(name, f"names {str(path)!r}, which is no file")
    media_type = media_type or _MEDIA.get(found.suffix.lower(), "application/octet-stream")
    kept = ctx.attach(found.name, found, media_type)
    more = {key: kept[key] for key in ("digest", "byteLength")}
    return {"path": str(path), "mediaType": media_type, **more}


def _refused(name: str, why: str) -> LoopError:
    return LoopError("VALIDATION", f"the proof {name!r} {why}.", phase="body")
