"""The part of a context that calls tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from runs.drivers import actions
from runs.drivers.actions import OnApproval
from runs.kernel.jsonable import JSONValue
from runs.kernel.tool_errors import ToolFailed, ToolRefused
from runs.shapes.tool import Tool

if TYPE_CHECKING:
    from runs.drivers.context import Context


class ToolCalls:
    """How a step takes an action outside: through the gateway, and in no other way."""

    def call_tool(
        self,
        name: str | Tool,
        input: Any = None,
        *,
        call_id: str = "",
        dry_run: bool = False,
        on_approval: OnApproval = "pause",
    ) -> JSONValue:
        """The result of a tool (interactions.md I36); `input` is checked and normalised first.

        Where somebody has to allow it, the step waits without a worker and is run again from its
        start: what was approved has run by then, as it was stored, and the same call gets the
        stored result. Within a run the identical call runs once. With `on_approval="report"` the
        step goes on instead, with `{"status": "approval_required", ...}` (I6). `call_id` is a
        model's own id of its call and takes the input's place in the key (I77).

        Raises ToolRefused when it did not run (`reason` says why: `approval_denied`, ...), and
        ToolFailed when it did and failed. A dry run returns `{"status": "suppressed", ...}`.
        """
        ctx = cast("Context", self)
        given = {} if input is None else input
        return actions.call_tool(
            ctx, name, given, call_id=call_id, dry_run=dry_run, on_approval=on_approval
        )

    def call_tools(
        self, calls: Sequence[Mapping[str, Any]], *, dry_run: bool = False
    ) -> list[dict[str, JSONValue]]:
        """What became of several calls of one turn, in their order (I39).

        Each is `{"name", "input", "call_id"?}`. All that need somebody's yes are asked together,
        and the step goes on when all are decided. Each result is `{"status": "succeeded",
        "result"}`, `{"status": "refused", "code", "message"}` or `{"status": "failed", ...}`.
        """
        return actions.call_tools(cast("Context", self), calls, dry_run=dry_run)

    def try_tool(
        self,
        name: str | Tool,
        input: Any = None,
        *,
        call_id: str = "",
        dry_run: bool = False,
        on_approval: OnApproval = "pause",
    ) -> dict[str, JSONValue]:
        """As `call_tool`, and a refusal is a result: for a model, which would work around one."""
        try:
            found = self.call_tool(
                name, input, call_id=call_id, dry_run=dry_run, on_approval=on_approval
            )
        except (ToolRefused, ToolFailed) as error:
            return error.to_result()
        if isinstance(found, dict) and found.get("status") in ("approval_required", "suppressed"):
            return found
        return {"status": "succeeded", "result": found}
