"""The stored client under its public name (gates.md section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from runs.drivers.storage.client import StoredCallbackClient
from runs.drivers.storage.local import RunStorage

if TYPE_CHECKING:
    from runs.stored import RecordCallbacks


@overload
def create_stored_callback_client(storage: RunStorage, run_id: str) -> StoredCallbackClient: ...


@overload
def create_stored_callback_client(storage: UUID | str) -> RecordCallbacks: ...


def create_stored_callback_client(storage: Any, run_id: str | None = None) -> Any:
    """The callback client of a stored run, from a local storage and the run's id.

    With a run's id alone it is the client of that run's record in the service, and only then
    Django is loaded. Raises StorageError, or RunUnknown, for a run that is not there (G76).
    """
    if isinstance(storage, RunStorage):
        if run_id is None:
            raise TypeError("a local storage holds many runs: say which with its run_id.")
        return StoredCallbackClient(storage, run_id)
    from runs.stored import RecordCallbacks

    return RecordCallbacks(storage if isinstance(storage, UUID) else UUID(storage))
