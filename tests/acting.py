"""A tool whose other side counts what really happened, and steps that call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runs.drivers.context import Context
from runs.kernel.jsonable import canonical_json
from runs.shapes.dag import pipeline
from runs.shapes.job import Job
from runs.shapes.steps import fn_job
from runs.shapes.tool import Tool, ToolCall, tool

POST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "draft_id": {"type": "string"},
        "channel": {"type": "string", "default": "linkedin"},
        "token": {"type": "string"},
    },
    "required": ["draft_id"],
    "additionalProperties": False,
}
FIRST = {"draft_id": "d1"}
ONCE = {"decision": "allow_once"}
CONVERSATION = {"decision": "allow_conversation"}
ALWAYS = {"decision": "allow_always"}
DENY = {"decision": "deny"}


class Downstream:
    """The other side: what it was sent, under which key; `fails` is raised by the next calls."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.fails: list[BaseException] = []
        self.known: dict[str, Any] = {}
        self.before: Callable[[], object] | None = None

    def post(self, given: Any, call: ToolCall) -> dict[str, Any]:
        if self.before is not None:
            self.before()
        if self.fails:
            raise self.fails.pop(0)
        self.sent.append((call.idempotency_key, given))
        return {"url": f"https://example.com/{given['draft_id']}"}

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.sent]


def publish_post(downstream: Downstream, **options: Any) -> Tool:
    """The tool of these tests; declared anew it takes the place of the one before."""

    def post(given: Any, call: ToolCall) -> Any:
        return downstream.post(given, call)

    facts: dict[str, Any] = {
        "name": "publish_post",
        "effect": "external-write",
        "approval_policy": "policy",
        "category": "publish",
        "risk": "medium",
        "summary": "Publish {draft_id} to {channel}",
        "cost": 250,
        "currency": "EUR",
        "input": POST,
    }
    made: Tool = tool(post, **(facts | options))
    return made


def calling(*inputs: Any, starts: list[str] | None = None, **options: Any) -> Job:
    """A step that publishes each input in turn."""

    def body(ctx: Context) -> str:
        if starts is not None:
            starts.append(ctx.idempotency_key)
        told = [ctx.call_tool("publish_post", given, **options) for given in inputs]
        return canonical_json(told)

    return flow(fn_job("publish", body))


def flow(job: Job, *after: Any) -> Job:
    return pipeline("p", [{"name": "publish", "job": job}, *after])
