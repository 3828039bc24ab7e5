"""The callback client over a run's event stream (gates.md section 8).

It holds no state: every operation reads the stream, folds it, decides, and appends at the
revision it read. Two processes over one run see each other's writes at the next call, and of two
who claim one question the store lets one through.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from runs.drivers.errors import StorageError
from runs.drivers.storage import values
from runs.drivers.storage.local import RunStorage, create_local_run_storage
from runs.kernel import callbacks
from runs.kernel.callbacks import (
    CallbackState,
    ClaimResult,
    ReleaseResult,
    SubmitResult,
    WireEvent,
)
from runs.kernel.gate import CallbackRequest, validate_callback_request
from runs.kernel.jsonable import FrozenDict, frozen_object

RECORDED: Final = "callback:history-recorded"
RUN_OPENED: Final = "run:opened"
RUN_STARTED: Final = "graph:run-started"
_TRIES: Final = 200
Result = TypeVar("Result")


class StoredCallbackClient:
    """The operations of the in-memory client on a stored run; results are the same."""

    def __init__(self, storage: RunStorage, run_id: str) -> None:
        """Raises StorageError (INVALID_STORED_VALUE) for a run that is not stored (G76)."""
        self._storage = storage
        self._run_id = values.storage_id(run_id, "/runId")
        if not is_stored(storage, run_id):
            text = f"there is no stored run {run_id!r}; open it with local_callbacks first."
            raise StorageError("INVALID_STORED_VALUE", text, path="/runId")

    @property
    def state(self) -> CallbackState:
        """Where every request stands now."""
        return self._folded()[0]

    def post(self, request: CallbackRequest | Mapping[str, object]) -> None:
        """Ask a question; others of the same gate that are still open are superseded."""
        valid = validate_callback_request(request)
        self._do(lambda state: (None, callbacks.post(state, valid)))

    def list_pending(self) -> list[CallbackRequest]:
        """The requests nobody holds and nobody has answered, first posted first."""
        return self.state.pending()

    def claim(self, request_id: str, router_id: str) -> ClaimResult:
        """Take a pending request; of many processes at once exactly one wins."""
        token = secrets.token_urlsafe(32)
        return self._do(lambda state: callbacks.claim(state, request_id, router_id, token))

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: object,
        *,
        actor: Mapping[str, object] | None = None,
    ) -> SubmitResult:
        """Answer a claimed request; the actor is checked and not kept, for a question asks none."""
        if actor is not None:
            frozen_object("actor", actor)
        return self._do(
            lambda state: callbacks.submit(
                state,
                request_id,
                claim_token=claim_token,
                router_id=router_id,
                request_digest=request_digest,
                response=response,
            )
        )

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """Give a claim back with its token."""
        return self._do(lambda state: callbacks.release(state, request_id, claim_token))

    def supersede(self, request_id: str, superseded_by: str) -> None:
        """Take a live request out of play."""
        self._do(lambda state: (None, callbacks.supersede(state, request_id, superseded_by)))

    def history(self, request_id: str | None = None) -> list[WireEvent]:
        """All events in order, or those that happened to one request."""
        found = list(self._wires(self._read()))
        callbacks.fold_all(callbacks.empty(), found)
        if request_id is None:
            return found
        return [event for event in found if callbacks.is_about(event, request_id)]

    # --- the stream ------------------------------------------------------------------------------

    def _read(self) -> list[FrozenDict]:
        return self._storage.event_store.read(self._storage.stream(self._run_id))

    def _folded(self) -> tuple[CallbackState, int]:
        envelopes = self._read()
        state = callbacks.fold_all(callbacks.empty(), self._wires(envelopes))
        return state, len(envelopes)

    @staticmethod
    def _wires(envelopes: list[FrozenDict]) -> Iterator[WireEvent]:
        for envelope in envelopes:
            if envelope["type"] == RECORDED:
                yield _wire(envelope)

    def _do(self, operate: Callable[[CallbackState], tuple[Result, list[WireEvent]]]) -> Result:
        """Apply an operation to what is there now, anew whenever somebody was faster (G78, G79)."""
        for _ in range(_TRIES):
            state, revision = self._folded()
            result, made = operate(state)
            if not made:
                return result
            try:
                self._append(revision, made)
            except StorageError as error:
                if error.code != "REVISION_CONFLICT":
                    raise
            else:
                return result
        text = f"the stream of {self._run_id} is written too often at once; try again."
        raise StorageError("REVISION_CONFLICT", text)

    def _append(self, revision: int, made: list[WireEvent]) -> None:
        events = [_envelope(self._run_id, RECORDED, {"event": event}) for event in made]
        self._storage.event_store.append(self._storage.stream(self._run_id), revision, events)


def _wire(envelope: FrozenDict) -> WireEvent:
    payload = envelope["payload"]
    if (
        envelope["version"] != 1
        or not isinstance(payload, FrozenDict)
        or not {"event"} <= set(payload) <= {"event", "approvalSubject"}
    ):
        text = "a stored callback event is of another version or has other fields."
        raise StorageError("INVALID_STORED_VALUE", text, path="/payload")
    return frozen_object("The callback event", payload["event"])


def _envelope(run_id: str, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "eventId": str(uuid.uuid4()),
        "type": kind,
        "version": 1,
        "timestamp": values.now(),
        "correlationId": run_id,
        "causationId": None,
        "payload": payload,
    }


def is_stored(storage: RunStorage, run_id: str) -> bool:
    """Whether the stream of the run begins as a run's stream does."""
    first = storage.event_store.read(storage.stream(run_id))[:1]
    return bool(first) and first[0]["type"] in (RUN_STARTED, RUN_OPENED)


def local_callbacks(path: Any, run_id: str) -> StoredCallbackClient:
    """The stored client of a run in the folder `path`, opening or making what it needs.

    Several processes may hold one: the script that asks, and whoever answers it.
    """
    storage = create_local_run_storage(path)
    while not is_stored(storage, run_id):
        opened = _envelope(run_id, RUN_OPENED, {"runId": run_id})
        try:
            storage.event_store.append(storage.stream(run_id), 0, [opened])
        except StorageError as error:
            # Another process opened it in the same moment.
            if error.code != "REVISION_CONFLICT" or not is_stored(storage, run_id):
                raise
    return StoredCallbackClient(storage, run_id)
