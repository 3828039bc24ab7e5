"""A run's events as they come: for a caller that waits, and as server-sent events.

Nothing here holds a thread while it waits. A reading runs in a pool of a few threads, and callers
that stand at the same place of the same record share one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from asgiref.sync import SyncToAsync, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from runs import live, wire
from runs.errors import RunArchived, need_here
from runs.feeds import bounded, places
from runs.feeds.threads import in_thread
from runs.models import Event, Run
from runs.replies import json_text, reply

LOOK_SECONDS: Final = 2.0
HEARTBEAT_SECONDS: Final = 15.0
# A client comes back with Last-Event-ID and is asked anew who it is and what it may see.
STREAM_SECONDS: Final = 15 * 60.0
BATCH: Final = 500
_JOIN_SECONDS: Final = 0.002
_state: Final = {"ending": False}


Reading = Callable[[UUID, int, int], Awaitable["Slice"]]


def end_all() -> None:
    """End every stream and every answer that waits, for good: this process is to stop."""
    _state["ending"] = True
    live.hub.ring_all()


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a record, where the record ended when it was read, and whether that is the end."""

    items: list[wire.Wire]
    head: int
    is_final: bool

    def to_wire(self) -> dict[str, Any]:
        return {"items": self.items, "head": self.head}

    @property
    def is_last(self) -> bool:
        return self.is_final and (not self.items or self.items[-1]["seq"] >= self.head)


def read(run_id: UUID, after: int, limit: int) -> Slice:
    """The events after a number; blocks."""
    run = Run.objects.defer("outcome", "params").get(pk=run_id)
    need_here(run)
    limit = bounded.events_that_fit(run_id, after, run.last_seq, limit)
    rows = Event.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[:limit]
    items = [wire.event(row) for row in rows]
    # An event may have come between the two queries; then the first is not the end any more.
    head = max(run.last_seq, items[-1]["seq"] if items else 0)
    return Slice(items, head, run.is_final and head == run.last_seq)


class Readings:
    """Readings about to begin; who asks for the same one in the same moment joins it."""

    def __init__(self) -> None:
        self._starting: dict[tuple[Any, ...], asyncio.Task[Slice]] = {}

    async def read(self, run_id: UUID, after: int, limit: int) -> Slice:
        key = (id(asyncio.get_running_loop()), run_id, after, limit)
        task = self._starting.get(key)
        if task is None:
            task = asyncio.create_task(self._start(key, run_id, after, limit))
            self._starting[key] = task
        # Whoever leaves takes nothing from the others.
        return await asyncio.shield(task)

    async def _start(self, key: tuple[Any, ...], run_id: UUID, after: int, limit: int) -> Slice:
        try:
            await asyncio.sleep(_JOIN_SECONDS)
        finally:
            # From here on a reading may miss what is committed next: nobody joins it any more.
            del self._starting[key]
        return await in_thread(read, run_id, after, limit)


_readings: Final = Readings()


async def slices(
    run_id: UUID, after: int, limit: int, seconds: float, reading: Reading = _readings.read
) -> AsyncGenerator[Slice | None, None]:
    """What follows in the record, None at every look that finds nothing; ends with the time."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    async with live.listening(live.run_topic(run_id)) as bell:
        while True:
            bell.clear()
            try:
                found = await reading(run_id, after, limit)
            except RunArchived:
                return  # it had ended long before; who comes back is told
            if found.items:
                after = found.items[-1]["seq"]
            yield found if found.items or found.is_last else None
            left = until - loop.time()
            if found.is_last or left <= 0 or _state["ending"]:
                return
            if not found.items or after >= found.head:
                await _rang(bell, min(left, _next_look(run_id, loop.time())))


def _next_look(run_id: UUID, now: float) -> float:
    """All who watch a run look at the same moments, so that they share the reading."""
    return LOOK_SECONDS - (now + run_id.int % 1000 / 500) % LOOK_SECONDS


async def _rang(bell: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(bell.wait(), seconds)


async def events_answer(
    request: HttpRequest, run_id: UUID, after: int, limit: int, wait: float, caller: str = ""
) -> HttpResponseBase:
    """The events after a number; with nothing there yet, the answer comes when something is."""
    found = await sync_to_async(read)(run_id, after, limit)
    if found.items or found.is_final or not wait:
        return reply(found.to_wire())
    if isinstance(request, ASGIRequest):
        waited = _waited(run_id, after, limit, wait, found)
        nothing = json_text(Slice([], found.head, False).to_wire())
        return _streamed(waited, "application/json", caller, nothing)
    text = _waited(run_id, after, limit, wait, found, sync_to_async(read))
    return HttpResponse(await anext(text), content_type="application/json")


async def _waited(
    run_id: UUID,
    after: int,
    limit: int,
    wait: float,
    found: Slice,
    reading: Reading = _readings.read,
) -> AsyncGenerator[str, None]:
    async with contextlib.aclosing(slices(run_id, after, limit, wait, reading)) as following:
        async for piece in following:
            if piece is not None:
                found = piece
                break
    yield json_text(found.to_wire())


def stream_answer(
    request: HttpRequest, run_id: UUID, after: int, caller: str = ""
) -> HttpResponseBase:
    """The events after a number as server-sent events, until the run has ended."""
    if isinstance(request, ASGIRequest):
        return _streamed(_frames(run_id, after), "text/event-stream", caller)
    return StreamingHttpResponse(_looked_up(run_id, after), content_type="text/event-stream")


async def _frames(run_id: UUID, after: int) -> AsyncGenerator[str, None]:
    loop = asyncio.get_running_loop()
    quiet_since = loop.time()
    yield _first_frame()
    async with contextlib.aclosing(slices(run_id, after, BATCH, STREAM_SECONDS)) as following:
        async for piece in following:
            if piece is not None and piece.items:
                quiet_since = loop.time()
                yield _framed(piece)
            elif loop.time() - quiet_since >= HEARTBEAT_SECONDS:
                quiet_since = loop.time()
                yield ": still here\n\n"


def _streamed(
    parts: AsyncGenerator[str, None], content_type: str, caller: str, spare: str = ""
) -> StreamingHttpResponse:
    place = places.of(caller)
    answer = StreamingHttpResponse(
        place.keep(_without_a_thread(parts), spare), content_type=content_type
    )
    # Django closes the answer of a client that went away; its generator ends some time later.
    answer._resource_closers.append(place.leave)  # type: ignore[attr-defined]  # untyped in its stubs
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def _without_a_thread(parts: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    """Give back what the request was served with, a thread and its connection, then go on.

    Django keeps both until the answer is over, which here may be a quarter of an hour.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None:
        await sync_to_async(close_old_connections)()
        executor = SyncToAsync.context_to_thread_executor.pop(context, None)
        if executor is not None:
            executor.shutdown(wait=False)
    async with contextlib.aclosing(parts):
        async for part in parts:
            yield part


def _looked_up(run_id: UUID, after: int) -> Iterator[str]:
    """The same for a server that knows no event loop: it looks again and again."""
    until = time.monotonic() + STREAM_SECONDS
    yield _first_frame()
    while time.monotonic() < until:
        piece = read(run_id, after, BATCH)
        if piece.items:
            after = piece.items[-1]["seq"]
            yield _framed(piece)
        if piece.is_last:
            return
        if not piece.items or after >= piece.head:
            time.sleep(LOOK_SECONDS)


def _first_frame() -> str:
    """How soon a client that was cut off comes back."""
    return f"retry: {int(LOOK_SECONDS * 1000)}\n\n"


def _framed(piece: Slice) -> str:
    return "".join(f"id: {event['seq']}\ndata: {json_text(event)}\n\n" for event in piece.items)
