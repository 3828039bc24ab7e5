"""A workflow that publishes through a tool, for the server of these tests and for their process."""

from __future__ import annotations

from typing import Any

from runs import fn_job, pipeline, publish
from runs.drivers.context import Context
from runs.shapes.tool import ToolCall, tool

NAME = "acts-on-the-page"


def _publish(given: dict[str, Any], call: ToolCall) -> dict[str, str]:
    call.log(f"published {given['draft_id']}")
    return {"url": f"https://example.com/{given['draft_id']}"}


tool(
    _publish,
    name="publish_on_page",
    input={
        "type": "object",
        "properties": {
            "draft_id": {"type": "string"},
            "channel": {"type": "string", "default": "linkedin"},
            "text": {"type": "string", "default": ""},
            "token": {"type": "string"},
        },
        "required": ["draft_id"],
    },
    effect="external-write",
    approval_policy="policy",
    category="publish",
    risk="high",
    exclude_requester=False,
    summary="Publish {draft_id} to {channel}",
    sensitive=["/token"],
    cost=1250,
    currency="EUR",
    audience={"users": ["ada"]},
)


def body(ctx: Context) -> str:
    given = {
        "draft_id": ctx.params["draft"],
        "text": "Autumn sale: everything 20 % off until Sunday. Read more on our page.",
        "token": "hidden",
    }
    return str(ctx.call_tool("publish_on_page", given))


publish(
    pipeline(NAME, [{"name": "publish", "job": fn_job("publish", body)}]),
    title="Publishes a post",
    params={"type": "object", "properties": {"draft": {"type": "string"}}},
    # Nobody's, so that the catalogue of other tests stays as it is.
    audience={"users": ["nobody"]},
)
