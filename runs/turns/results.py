"""What a step hands over at its end, checked against what the record takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from runs.drivers.execute import Ended
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind, Path
from runs.kernel.frozen import MAX_DEPTH, FrozenDict
from runs.kernel.jsonable import JSONValue, JsonValueError, json_equal, snapshot
from runs.kernel.outcomes import failing
from runs.kernel.turns import RECORDED_ENGINE_USAGE

MAX_BYTES: Final = 1024 * 1024
MAX_LOG: Final = 20_000
# An event, an outcome and its data are around what a step returns, and again at every graph.
_AROUND: Final = 8
_AROUND_GRAPH: Final = 2
_KIND: Final = re.compile(r"[!-~]{1,60}")


def checked(
    ended: Ended,
    path: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    clean: Callable[[Any], Any],
) -> tuple[Ended, dict[str, Any]]:
    """The end as it can be recorded, and what the step changed in `ctx.state` (runs.md R4).

    `clean` takes secrets out of the changes (runs.md R227); the outcome has none.
    A result the record cannot take becomes a failure of its step.
    """
    try:
        _fits("the result", _handed_over(ended), path)
        changes = _changes(before, after)
        if changes:
            changes = clean(changes)
            _fits("what changed in ctx.state", changes, path)
    except LoopError as refused:
        return Ended(outcome=failing(refused), error=refused), {}
    return ended, {"state": changes} if changes else {}


def _handed_over(ended: Ended) -> JSONValue:
    if ended.asking is not None:
        return ended.asking.request.to_wire()
    assert ended.outcome is not None
    return ended.outcome.to_json()


def _fits(what: str, value: JSONValue, path: Path) -> None:
    frozen = _frozen(what, value)
    size = _size(frozen)
    if size > MAX_BYTES:
        raise _refused(f"{what} takes {size} bytes of {MAX_BYTES}. Keep more with ctx.attach().")
    deepest = MAX_DEPTH - _AROUND - _AROUND_GRAPH * (len(path) // 2)
    if frozen.height > deepest:
        raise _refused(f"{what} goes more than {deepest} levels deep.")


def _frozen(what: str, value: object) -> FrozenDict:
    try:
        frozen = snapshot(value)
    except JsonValueError as error:
        raise _refused(f"{what} holds what is no JSON: {error}") from error
    assert isinstance(frozen, FrozenDict)
    return frozen


def _refused(text: str) -> LoopError:
    return LoopError("VALIDATION", text, phase="body")


def _size(value: FrozenDict) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, JSONValue]:
    # Which model answered is a fact of the record, not of the step that looked last.
    kept = {key: value for key, value in after.items() if key != RECORDED_ENGINE_USAGE}
    now = _frozen("ctx.state", kept)
    changed = {
        key: value
        for key, value in now.items()
        if key not in before or not json_equal(value, before[key])
    }
    removed = [key for key in before if key not in now]
    return {"set": changed, "removed": removed} if changed or removed else {}


def emitted(kind: str, fields: Mapping[str, JSONValue]) -> FrozenDict:
    """The fields of an event a step emits; raises LoopError for what no event can hold."""
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise _refused(f"{kind!r:.80} is no kind of event.")
    if kind == EventKind.LOG and len(str(fields.get("message", ""))) > MAX_LOG:
        fields = {**fields, "message": f"{str(fields['message'])[:MAX_LOG]} … (cut)"}
    frozen = _frozen(f"the event {kind}", fields)
    size = _size(frozen)
    if size > MAX_BYTES:
        raise _refused(f"the event {kind} takes {size} bytes; an event holds {MAX_BYTES}.")
    return frozen
