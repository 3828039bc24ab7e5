"""The stored client under its public name (gates.md section 8)."""

from __future__ import annotations

from uuid import UUID

from runs.stored import RecordCallbacks


def create_stored_callback_client(run_id: UUID | str) -> RecordCallbacks:
    """The callback client of a run's own record; raises RunUnknown for a run that is not there."""
    return RecordCallbacks(run_id if isinstance(run_id, UUID) else UUID(run_id))
