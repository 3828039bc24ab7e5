"""Records written by hand, in the shape of the wire, one second between events."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]
BEGIN = 1_767_225_600_000  # 2026-01-01T00:00:00Z


def record(*events: Event) -> list[Event]:
    """The events with times from the beginning of 2026, and a path where they have none."""
    return [{"path": [], **event, "ts": BEGIN + index * 1000} for index, event in enumerate(events)]


def start(**more: Any) -> Event:
    return {"kind": "run:start", "session": 1, **more}


def end(status: str = "pass", **more: Any) -> Event:
    usage = {"inputTokens": 12_345, "outputTokens": 678}
    return {"kind": "run:end", "outcome": {"status": status}, "usage": usage, **more}


def graph(*nodes: str, path: tuple[str, ...] = ("g",)) -> Event:
    return {"kind": "dag:start", "path": list(path), "depth": 1, "nodes": list(nodes)}


def node(name: str, phase: str, *, attempt: int = 1, path: Any = ("g",), **outcome: Any) -> Event:
    event = {"kind": "dag:node", "path": list(path), "node": name, "phase": phase}
    more = {"outcome": outcome} if outcome else {}
    return {**event, "attempt": attempt, **more}


def at(*path: str, kind: str, **fields: Any) -> Event:
    return {"kind": kind, "path": list(path), **fields}


def sent_back(sender: str, target: str, *, count: int = 1, accepted: bool = True) -> Event:
    return {
        "kind": "dag:kickback",
        "path": ["g"],
        "from": sender,
        "to": target,
        "reason": "add the header row",
        "accepted": accepted,
        "count": count,
        "limit": 1,
    }


def call(*path: str, model: str = "m-1", **usage: int) -> Event:
    given = {"kind": "reported", **usage} if usage else {"kind": "unknown"}
    return {"kind": "engine:usage", "path": list(path), "model": model, "usage": given}
