"""Folded states and compiled shapes that this process remembers.

The record stays the authority: a remembered state is only a start, and the events after it are
read and folded before anything is decided.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from django.db import connection

from runs.kernel.events import Event
from runs.kernel.graph import Shape, shape_from_json
from runs.kernel.jsonable import digest_hex, snapshot
from runs.kernel.moments import milliseconds
from runs.kernel.state import RunState, fold, reduce
from runs.models import Definition
from runs.models import Event as EventRow
from runs.turns import projection
from runs.turns.projection import Places

K = TypeVar("K")
V = TypeVar("V")
REMEMBERED: Final = 512


_memories: list[Memory[Any, Any]] = []


class Memory(Generic[K, V]):
    """The most recently used values, safe for threads."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[K, V] = OrderedDict()
        _memories.append(self)

    def get(self, key: K) -> V | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()


_states: Memory[UUID, RunState] = Memory()
_shapes: Memory[str, Shape] = Memory()
_identities: Memory[str, str] = Memory()
_places: Memory[str, Places] = Memory()


def to_event(row: EventRow) -> Event:
    """The kernel's event of a stored row."""
    return Event(
        kind=row.kind,
        path=tuple(row.path),
        fields=row.payload,
        seq=row.seq,
        ts=milliseconds(row.at),
        actor=row.actor,
        surface=row.surface,
        key=row.key,
    )


def known_of(run_id: UUID) -> RunState:
    """What this process remembers of the run: a state of some time ago, or the empty one."""
    return _states.get(run_id) or RunState()


def state_at(
    run_id: UUID,
    last_seq: int,
    *,
    committed: bool | None = None,
    known: RunState | None = None,
    news: Iterable[Event] = (),
) -> RunState:
    """The state of the run after the event `last_seq`; remembered when that is `committed`.

    Of `news`, what follows `known` without a gap need not be read again.
    """
    if committed is None:
        committed = not connection.in_atomic_block
    state = known_of(run_id) if known is None else known
    if state.seq > last_seq:
        state = RunState()
    if state.seq == last_seq:
        return state
    for event in news:
        if event.seq == state.seq + 1 and event.seq <= last_seq:
            state = reduce(state, event)
    if state.seq < last_seq:
        rows = EventRow.objects.filter(run_id=run_id, seq__gt=state.seq, seq__lte=last_seq)
        state = fold((to_event(row) for row in rows.order_by("seq").iterator()), state)
    if committed:
        remember(run_id, state)
    return state


def remember(run_id: UUID, state: RunState) -> None:
    """Keep a state that is committed."""
    known = _states.get(run_id)
    if known is None or known.seq < state.seq:
        _states.put(run_id, state)


class DefinitionEdited(ValueError):
    """The stored shape is not the one its digest was made of: somebody changed it."""


def shape_of(definition: Definition | str) -> Shape:
    """The compiled shape of a definition, or of the definition with that digest."""
    digest = definition if isinstance(definition, str) else definition.digest
    shape = _shapes.get(digest)
    if shape is None:
        if isinstance(definition, str):
            definition = Definition.objects.get(pk=definition)
        wire = snapshot(definition.shape)
        if not isinstance(wire, dict) or digest_hex(wire) != digest:
            raise DefinitionEdited(f"The definition {digest[:12]} was changed after it was stored.")
        shape = shape_from_json(wire)
        _shapes.put(digest, shape)
    return shape


def places_of(digest: str | None) -> Places:
    """What never changes of the rows of a definition's steps, as it is written."""
    if digest is None:
        return {}
    places = _places.get(digest)
    if places is None:
        places = projection.written(projection.places_of(shape_of(digest)))
        _places.put(digest, places)
    return places


def identity_of(digest: str) -> str:
    """The identity of the definition with that digest."""
    identity = _identities.get(digest)
    if identity is None:
        identity = Definition.objects.values_list("identity", flat=True).get(pk=digest)
        _identities.put(digest, identity)
    return identity


def forget() -> None:
    """Drop everything remembered, as a fresh process would start."""
    for memory in _memories:
        memory.clear()
