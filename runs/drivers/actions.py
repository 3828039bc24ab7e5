"""The gateway that every call of a tool goes through (interactions.md I36, I68-I75).

A step that waits for a yes ends there and is run again from its start. What was approved runs
before it, as it was stored; the call in the step then gets the stored result.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from runs.drivers.plain import plain
from runs.drivers.questions import AnswerAwaited
from runs.kernel import calls
from runs.kernel.actions import ORGANISATION, call_key, step_key
from runs.kernel.asking import approval_events
from runs.kernel.calls import Call, Ready, Surroundings, Verdict
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind
from runs.kernel.jsonable import (
    JSONValue,
    JsonValueError,
    canonical_json,
    digest_hex,
    frozen_object,
    snapshot,
    thaw,
)
from runs.kernel.redact import redact
from runs.kernel.slots import RunState
from runs.kernel.tool_errors import ToolFailed, ToolRefused
from runs.shapes.job import Asking
from runs.shapes.tool import Tool, ToolCall, registered

if TYPE_CHECKING:
    from runs.drivers.context import Context

OnApproval = Literal["pause", "report"]
MAX_RESULT: Final = 64 * 1024
MAX_TEXT: Final = 2_000
MAX_CALL_ID: Final = 200
SUPPRESSED: Final = "suppressed"


class Prepared:
    """One call, read and normalised; nobody has been asked yet."""

    def __init__(self, ctx: Context, given: str | Tool, input: Any, call_id: str) -> None:
        ctx.notes.questions.need_step_thread("call tools")
        self.tool = _resolved(given)
        if not isinstance(call_id, str) or len(call_id) > MAX_CALL_ID:
            raise ToolRefused("invalid_input", f"call_id has at most {MAX_CALL_ID} characters.")
        stored = self.tool.input.normalised(input)
        digest = digest_hex(stored)
        if self.tool.is_keyed or self.tool.is_gated:
            key = call_key(ORGANISATION, ctx.run_id, self.tool.name, digest, call_id=call_id)
            ask = ctx.notes.count_call(key)
        else:
            number, ask = ctx.notes.count_call(f"{self.tool.name} {digest}"), 1
            key = step_key(ctx.idempotency_key, number, self.tool.name, digest)
        self.call = Call(
            key=key,
            input=snapshot(stored),
            input_digest=digest,
            facts=self.tool.facts(stored),
            path=ctx.path,
            attempt=ctx.idempotency_key,
            ask=ask,
            mark=secrets.token_hex(8),
        )


def _resolved(given: str | Tool) -> Tool:
    found = given if isinstance(given, Tool) else registered(given)
    if found is None:
        # A tool that may not be used and one that is not there are refused alike (I36.1).
        raise ToolRefused("not_found", f"there is no tool {given!r:.80} for this run.")
    return found


def call_tool(
    ctx: Context,
    given: str | Tool,
    input: Any,
    *,
    call_id: str = "",
    dry_run: bool = False,
    on_approval: OnApproval = "pause",
) -> JSONValue:
    """The result of one call; raises ToolRefused or ToolFailed. See Context.call_tool."""
    found = _begun(ctx, Prepared(ctx, given, input, call_id), dry_run=dry_run)
    if not isinstance(found, Waits):
        return found
    if on_approval == "report":
        return found.reported(ctx)
    _wait(ctx, [found])
    raise AnswerAwaited


def call_tools(
    ctx: Context, asked: Sequence[Mapping[str, Any]], *, dry_run: bool = False
) -> list[dict[str, JSONValue]]:
    """What became of several calls of one turn, in their order (I39). See Context.call_tools."""
    found: list[dict[str, JSONValue] | Waits] = []
    for one in asked:
        try:
            made = Prepared(ctx, one["name"], one.get("input", {}), str(one.get("call_id", "")))
            result = _begun(ctx, made, dry_run=dry_run)
            found.append(
                result if isinstance(result, Waits) else {"status": "succeeded", "result": result}
            )
        except (ToolRefused, ToolFailed) as error:
            found.append(error.to_result())
    waiting = [one for one in found if isinstance(one, Waits)]
    if waiting:
        _wait(ctx, waiting)
        raise AnswerAwaited
    return [one for one in found if not isinstance(one, Waits)]


class Waits:
    """A call that waits for somebody's yes."""

    def __init__(self, prepared: Prepared, verdict: Verdict) -> None:
        assert verdict.request is not None
        self.prepared = prepared
        self.request = verdict.request
        self.routing = verdict.routing

    def reported(self, ctx: Context) -> dict[str, JSONValue]:
        """Ask without waiting: the request is posted, and whoever called is told so (I6)."""
        routing = {**self.routing, "reported": True}

        def post(state: RunState, _around: Surroundings, now: int) -> list[Event]:
            return approval_events(state, ctx.path, self.request, routing, now)

        ctx.notes.refuse_secrets("the question", self.request.to_wire())
        ctx.port.act(post)
        summary = str(self.prepared.call.facts["summary"])
        return {
            "status": "approval_required",
            "interactionId": self.request.request_id,
            "summary": summary,
            "message": "A person has to allow this call. Nothing was executed; do not work "
            "around it. Call again once it is allowed.",
        }


def _wait(ctx: Context, waiting: list[Waits]) -> None:
    first, *others = [Asking(request=one.request, routing=one.routing) for one in waiting]
    ctx.notes.questions.waiting = Asking(
        request=first.request, routing=first.routing, others=tuple(others)
    )


def _begun(ctx: Context, made: Prepared, *, dry_run: bool) -> JSONValue | Waits:
    """The call through the gate: its result, or that it waits."""
    call, tool = made.call, made.tool
    known = ctx.actions.get(call.key)
    if known is not None and known.execution == "succeeded":
        if known.input_digest == call.input_digest and known.tool == call.tool:
            return _plain(known.result)
    elif known is None and tool.preflight is not None:
        _preflight(ctx, tool, call)
    if (ctx.dry_run or dry_run) and tool.effect != "read":
        return _suppressed(ctx, call)
    if call.key in ctx.notes.failed_calls:
        # It ran before this start of the step and may be tried again, but not at once.
        raise ctx.notes.failed_calls[call.key]
    if not tool.is_keyed and not tool.is_gated:
        return _unkeyed(ctx, tool, call)
    verdict = _enter(ctx, tool, call)
    if verdict.kind == "ask":
        return Waits(made, verdict)
    return _result_of(ctx, tool, call, verdict)


def _enter(ctx: Context, tool: Tool, call: Call) -> Verdict:
    found: list[Verdict] = []

    def gate(state: RunState, around: Surroundings, now: int) -> list[Event]:
        verdict, events = calls.enter(state, call, around, now)
        found.append(verdict)
        return events

    ctx.port.act(gate, permission=tool.permission, call=call)
    return found[-1]


def _result_of(ctx: Context, tool: Tool, call: Call, verdict: Verdict) -> JSONValue:
    match verdict.kind:
        case "result":
            return _plain(verdict.result)
        case "run":
            return _run(ctx, tool, call, verdict)
        case "failed":
            raise ToolFailed(verdict.message, reason=verdict.code, retryable=verdict.retryable)
    raise ToolRefused(verdict.code, verdict.message, retryable=verdict.retryable)


def _preflight(ctx: Context, tool: Tool, call: Call) -> None:
    """Look before anybody is asked; what it raises is the call's own error (I36.5)."""
    assert tool.preflight is not None
    ctx.call(tool.preflight, *tool.arguments(tool.preflight, thaw(call.input), _told(ctx, call)))


def _suppressed(ctx: Context, call: Call) -> JSONValue:
    """A dry run records what it would have done, and stores nothing under the key (I36.6, I81)."""

    def record(_state: RunState, _around: Surroundings, _now: int) -> list[Event]:
        told = {
            "tool": call.tool,
            "inputDigest": call.input_digest,
            "summary": call.facts["summary"],
        }
        return [Event(EventKind.TOOL_SUPPRESSED, call.path, told)]

    ctx.port.act(record)
    return {"status": SUPPRESSED, "tool": call.tool, "summary": str(call.facts["summary"])}


# --- running -------------------------------------------------------------------------------------


def _told(ctx: Context, call: Call) -> ToolCall:
    return ToolCall(
        tool=call.tool,
        idempotency_key=call.key,
        run_id=ctx.run_id,
        path=ctx.path,
        log=ctx.log,
    )


def _run(ctx: Context, tool: Tool, call: Call, verdict: Verdict) -> JSONValue:
    """Do the call that was reserved, and record its end (I73)."""
    if verdict.resumed == "started" and tool.query is not None:
        found = ctx.call(
            tool.query, *tool.arguments(tool.query, thaw(call.input), _told(ctx, call))
        )
        if found is not None:
            return _end(ctx, call, _stored(ctx, found))
    in_hand: list[bool] = []

    def start(state: RunState, _around: Surroundings, _now: int) -> list[Event]:
        in_hand.append(calls.has_in_hand(state, call))
        return calls.started(state, call)

    ctx.port.act(start)
    if not in_hand[-1]:
        raise ToolRefused(calls.CONFLICT, "another start has this call by now.", retryable=True)
    try:
        result = _stored(ctx, _called(ctx, tool, call))
    except (Exception, SystemExit, asyncio.CancelledError) as raised:
        failed = _as_failure(ctx, raised)
        _end(ctx, call, None, error=failed.to_error())
        raise failed from raised
    return _end(ctx, call, result)


def _called(ctx: Context, tool: Tool, call: Call) -> Any:
    return ctx.call(tool.fn, *tool.arguments(tool.fn, thaw(call.input), _told(ctx, call)))


def _unkeyed(ctx: Context, tool: Tool, call: Call) -> JSONValue:
    """A call that changes nothing outside: its result is kept for the next start of the step."""
    try:
        result = _stored(ctx, _called(ctx, tool, call))
    except (Exception, SystemExit, asyncio.CancelledError) as raised:
        failed = _as_failure(ctx, raised)
        _tell(ctx, call.event(EventKind.TOOL_FAILED, error=failed.to_error()))
        raise failed from raised
    _tell(
        ctx,
        call.event(EventKind.TOOL_COMPLETED, inputDigest=call.input_digest, result=result),
    )
    return _plain(result)


def _tell(ctx: Context, event: Event) -> None:
    ctx.port.act(lambda _state, _around, _now: [event])


def _end(
    ctx: Context, call: Call, result: JSONValue, *, error: dict[str, Any] | None = None
) -> JSONValue:
    def end(state: RunState, _around: Surroundings, _now: int) -> list[Event]:
        return calls.ended(state, call, result=result, error=error)

    ctx.port.act(end)
    return _plain(result)


def _plain(frozen: Any) -> JSONValue:
    value: JSONValue = thaw(frozen)
    return value


def _stored(ctx: Context, value: Any) -> JSONValue:
    """The result as the record can hold it. What happened has happened, whatever was returned."""
    try:
        found = snapshot(ctx.scrubbed(plain(value)), max_depth=64)
        if len(canonical_json(found).encode()) <= MAX_RESULT:
            return found
        why = f"it takes more than {MAX_RESULT // 1024} KiB; keep more with ctx.attach()."
    except (JsonValueError, LoopError, TypeError, ValueError) as fault:
        why = f"it is no JSON: {fault}"[:MAX_TEXT]
    return frozen_object("the result", {"omitted": why})


def _as_failure(ctx: Context, raised: BaseException) -> ToolFailed:
    """The tool's own failure, or an error of its code, which no second try mends (I83)."""
    text = redact(ctx.scrubbed(str(raised) or type(raised).__name__))[:MAX_TEXT]
    if isinstance(raised, ToolFailed):
        return ToolFailed(text, reason=raised.reason[:60], retryable=raised.retryable)
    if isinstance(raised, LoopError) and raised.retryable:
        return ToolFailed(text, reason=raised.code.lower(), retryable=True)
    return ToolFailed(f"{type(raised).__name__}: {text}", retryable=False)


# --- going on ------------------------------------------------------------------------------------


def resume(ctx: Context) -> None:
    """Run what was approved since the step last stood here, in the order of the answers (I68)."""
    for ready in ctx.approved:
        call = _restored(ctx, ready)
        if isinstance(call, str):
            _refuse_stored(ctx, ready, call)
            continue
        tool = registered(ready.tool)
        assert tool is not None
        verdict = _enter(ctx, tool, call)
        if verdict.kind != "run":
            continue
        try:
            _run(ctx, tool, call, verdict)
        except ToolFailed as failed:
            if failed.retryable:
                ctx.notes.failed_calls[call.key] = failed
        except ToolRefused:
            continue


def _restored(ctx: Context, ready: Ready) -> Call | str:
    """The stored call, if its tool still reads it as it was approved; else why not (I72).

    What runs is the stored value itself, never what normalising it again makes of it.
    """
    tool = registered(ready.tool)
    if tool is None:
        return calls.STALE
    try:
        again = tool.input.normalised(thaw(ready.input))
        if digest_hex(again) != digest_hex(ready.input):
            return calls.STALE
        facts = tool.facts(again)
    except ToolRefused:
        return calls.STALE
    return Call(
        key=ready.key,
        input=ready.input,
        input_digest=digest_hex(ready.input),
        facts=facts,
        path=ctx.path,
        attempt=ctx.idempotency_key,
        request_id=ready.request_id,
        mark=secrets.token_hex(8),
    )


def _refuse_stored(ctx: Context, ready: Ready, code: str) -> None:
    told = {"key": ready.key, "tool": ready.tool, "requestId": ready.request_id, "code": code}
    _tell(ctx, Event(EventKind.TOOL_REFUSED, ctx.path, told))
