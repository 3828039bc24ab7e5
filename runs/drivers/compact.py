"""The short form of an event, for records that are kept beside the work (runs.md R219)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runs.kernel.events import Event

LEFT_OUT: Final = "[left out]"
_KEPT: Final = frozenset(
    {
        "status",
        "confidence",
        "late",
        "summary",
        "error",
        "stall",
        "revision",
        "discarded",
        "openFindings",
        "command",
    }
)
_IDENTITY: Final = ("requestId", "gateId", "gateVersion", "digest")
# Where an event keeps an outcome: its own, and the review a send-back carries.
_OUTCOMES: Final = ("outcome", "review")


def compact(event: Event) -> Event:
    """The event with its bulk left out; what a resume needs of it stays."""
    fields = dict(event.fields)
    for name in _OUTCOMES:
        if isinstance(fields.get(name), Mapping):
            fields[name] = _outcome(fields[name])
    result = fields.get("result")
    if isinstance(result, Mapping) and result.get("output") is not None:
        fields["result"] = {**result, "output": LEFT_OUT}
    artifact = fields.get("artifact")
    if isinstance(artifact, Mapping):
        fields["artifact"] = {key: value for key, value in artifact.items() if key != "data"}
    return Event(event.kind, event.path, fields, seq=event.seq, ts=event.ts)


def _outcome(wire: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in wire.items() if key in _KEPT}
    data = wire.get("data")
    if isinstance(data, Mapping):
        if data.get("skipped") is True:
            kept["data"] = {"skipped": True}
        elif "requestId" in data:
            kept["data"] = {name: data[name] for name in _IDENTITY if name in data}
    return kept
