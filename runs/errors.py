"""What the services of runs refuse, and why. `code` is public and stable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from runs.models import Run


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


class RunArchived(RunsError):
    """The record of the run lies in the archive, and no longer in the database."""

    code = "archived"
    receipt_url = ""

    @classmethod
    def of(cls, run: Run) -> Self:
        """The refusal for what needs the record of this run."""
        at = f"{run.archived_at:%Y-%m-%d}" if run.archived_at else "now"
        made = cls(
            f"Run {run.short} was archived on {at}; its record is the file {run.archive_name} "
            f"({run.archive_digest}). An operator brings it back: manage.py restore_run {run.pk}"
        )
        made.details = {"runId": str(run.pk), "archivedAt": at, "file": run.archive_name}
        made.details["digest"] = run.archive_digest
        return made


def need_here(run: Run) -> None:
    """Raise RunArchived for a run whose record is not in the database."""
    if run.archived_at is not None:
        raise RunArchived.of(run)


class TooManyOpen(RunsError):
    """One caller has as much under way as one may have."""

    code = "too-many-open"


class IdempotencyConflict(RunsError):
    """The idempotency key started another run."""

    code = "idempotency-conflict"
    field = "Idempotency-Key"
