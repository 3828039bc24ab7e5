"""What a driver lends a running step, so that one context serves every driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from runs.kernel.calls import Call, Surroundings
from runs.kernel.events import Event
from runs.kernel.events import Path as EventPath
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JSONValue
from runs.kernel.slots import RunState

Decide = Callable[[RunState, Surroundings, int], Sequence[Event]]


class Callbacks(Protocol):
    """The callback client operations a step uses (gates.md section 5)."""

    def post(self, request: CallbackRequest) -> None: ...
    def list_pending(self) -> list[CallbackRequest]: ...
    def claim(self, request_id: str, router_id: str) -> Any: ...
    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: Any,
    ) -> Any: ...
    def release(self, request_id: str, claim_token: str) -> Any: ...
    def supersede(self, request_id: str, superseded_by: str) -> None: ...
    def history(self, request_id: str | None = None) -> list[Any]: ...


class StepPort(Protocol):
    """Where a step's events and artifacts go."""

    @property
    def callbacks(self) -> Callbacks:
        """The questions of the run."""

    def emit(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        """Record an event of the running step; refused silently once its lease is gone."""

    def stream(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        """Tell whoever watches now; it is not kept (runs.md R216)."""

    def attach(
        self, name: str, content: bytes | Path, media_type: str, path: EventPath
    ) -> dict[str, JSONValue]:
        """Keep bytes with the run: name, digest, byteLength and mediaType."""

    def engine_call(self, at_most: int | None) -> AbstractContextManager[None]:
        """Around every call of an engine; raises LoopError BUDGET when nothing is left for it."""

    def act(self, decide: Decide, *, permission: str = "", call: Call | None = None) -> None:
        """Record what `decide` says of the state as it is now, in one turn with looking at it.

        `permission` and `call` say what of the surroundings it goes by. Raises LoopError ABORTED
        once this start is not the one that works.
        """

    def is_held(self) -> bool:
        """Whether this start is still the one that may do the step's work."""

    def leave_thread(self) -> None:
        """Called last on every further thread that a step used."""


class Sink(Protocol):
    """Hears every event of a session, in order, under the session's lock."""

    def write(self, event: Event) -> None: ...
    def close(self) -> None: ...
