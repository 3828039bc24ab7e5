"""What the services of runs refuse, and why. `code` is public and stable."""

from __future__ import annotations

from typing import Any


class RunsError(Exception):
    """Base of the refusals."""

    code = ""
    field: str | None = None
    details: Any = None


class WorkflowUnknown(RunsError):
    """No such workflow can be started here."""

    code = "workflow-unknown"
    field = "workflow"


class WorkflowBroken(RunsError):
    """The workflow's file does not import."""

    code = "workflow-broken"
    field = "workflow"


class ParamsRefused(RunsError):
    """The parameters do not fit the workflow's schema; `fields` maps a name to its message."""

    code = "params"
    field = "params"

    def __init__(self, message: str, fields: list[tuple[str, str]]) -> None:
        super().__init__(message)
        self.fields = fields
        self.details = [{"field": name, "message": text} for name, text in fields]


class RunEnded(RunsError):
    """The run has ended already."""

    code = "ended"


class NothingToResume(RunsError):
    """The run is not stopped."""

    code = "not-paused"


class NothingToRetry(RunsError):
    """Nothing of the run waits for its next try."""

    code = "not-retrying"


class NothingToRerun(RunsError):
    """The run goes on, or the step cannot be the first of a new one."""

    code = "not-over"


class TooManyOpen(RunsError):
    """One caller has as much under way as one may have."""

    code = "too-many-open"


class IdempotencyConflict(RunsError):
    """The idempotency key started another run."""

    code = "idempotency-conflict"
    field = "Idempotency-Key"
