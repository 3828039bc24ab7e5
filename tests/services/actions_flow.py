"""Steps that act outside through tools with each kind of recovery; the other side is two files."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from runs import fn_job, pipeline, publish
from runs.drivers.context import Context
from runs.shapes.tool import ToolCall, tool

# Where this process dies, by a signal that lets it say nothing.
FATE = {"point": ""}
RECOVERIES = ("replay", "query", "none")
_POST: dict[str, Any] = {
    "type": "object",
    "properties": {"draft_id": {"type": "string"}},
    "required": ["draft_id"],
}


def die_at(point: str) -> None:
    if FATE["point"] == point:
        os.kill(os.getpid(), signal.SIGKILL)


def lines(name: str) -> list[str]:
    """What the other side has written down: `sends` that reached it, `effects` that it had."""
    found = Path(os.environ["OBVERSA_HOME"]) / name
    return found.read_text().splitlines() if found.exists() else []


def _write(name: str, line: str) -> None:
    path = Path(os.environ["OBVERSA_HOME"]) / name
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def _post(given: dict[str, Any], call: ToolCall) -> dict[str, str]:
    die_at("started")
    _write("sends", call.idempotency_key)
    # Only one of the three other sides knows a key again.
    if call.tool != "post_replay" or call.idempotency_key not in lines("effects"):
        _write("effects", call.idempotency_key)
    die_at("sent")
    return {"posted": given["draft_id"]}


def _look(given: dict[str, Any], call: ToolCall) -> dict[str, str] | None:
    return {"posted": given["draft_id"]} if call.idempotency_key in lines("effects") else None


def _calls(name: str) -> Any:
    def body(ctx: Context) -> str:
        return str(ctx.call_tool(name, {"draft_id": "d1"}))

    return body


for _recovery in RECOVERIES:
    _name = f"post_{_recovery}"
    tool(
        _post,
        name=_name,
        input=_POST,
        effect="external-write",
        category="publish",
        risk="medium",
        summary="Post {draft_id}",
        recovery=_recovery,  # type: ignore[arg-type]  # one of the three
        query=_look if _recovery == "query" else None,
    )
    publish(
        pipeline(f"acts-{_recovery}", [{"name": "post", "job": fn_job("post", _calls(_name))}]),
        title=f"Acts, recovers by {_recovery}",
    )
