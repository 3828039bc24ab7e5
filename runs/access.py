"""Who may see, start, cancel and resume runs: the only file that decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from django.db.models import Q, QuerySet
from structlog.contextvars import bind_contextvars

from runs.models import Run, Workflow
from runs.people.principals import Principal

# Further reasons to see a run, each one SQL condition made from the caller's audiences; gates adds
# the questions somebody may answer.
also_visible: list[Callable[[list[int]], Q]] = []


class NotVisible(LookupError):
    """There is no such thing for this caller."""

    code = "not-found"


class Forbidden(PermissionError):
    """The caller sees it and may not do that."""

    code = "forbidden"


def sees_all(who: Principal) -> bool:
    """People with the view permission, and keys of nobody in particular, see every run."""
    is_program = bool(who.key_name) and who.user is None and not who.router
    return is_program or who.has_perm("runs.view_run")


def visible_runs(who: Principal) -> QuerySet[Run]:
    """The runs this caller may see, as one query."""
    if not who.is_known or not (who.has_scope("read") or who.has_scope("operate")):
        return Run.objects.none()
    if sees_all(who):
        return Run.objects.all()
    audiences = who.audiences
    seen = Q(audience__in=audiences) | Q(started_by__in=who.names)
    for reason in also_visible:
        seen |= reason(audiences)
    return Run.objects.filter(seen)


def run_or_404(who: Principal, run_id: UUID) -> Run:
    """Return the run, for somebody who may see it; raises NotVisible."""
    run = visible_runs(who).filter(pk=run_id).first()
    if run is None:
        raise NotVisible(f"There is no run {run_id} here.")
    bind_contextvars(run_id=str(run_id))
    return run


def visible_workflows(who: Principal) -> QuerySet[Workflow]:
    """What this caller may see in the catalogue."""
    if not who.is_known or not who.has_scope("read"):
        return Workflow.objects.none()
    listed = Workflow.objects.filter(listed=True).select_related("audience")
    if sees_all(who):
        return listed
    return listed.filter(audience__in=who.audiences)


def startable_names(who: Principal, workflows: Iterable[Workflow]) -> set[str]:
    """Which of the workflows this caller may start: their starters', or else their audience's.

    Seeing everything gives a person no right to start. A key of nobody was made on the server
    itself, by somebody who could start anything there.
    """
    if not who.is_known or not who.has_scope("start"):
        return set()
    trusted = bool(who.key_name) and who.user is None
    mine = who.audiences
    return {
        workflow.name
        for workflow in workflows
        if trusted or (workflow.starters_id or workflow.audience_id) in mine
    }


def may_start(who: Principal, workflow: Workflow) -> bool:
    """Whether this caller may start it; the same rule as for the catalogue."""
    return workflow.name in startable_names(who, [workflow])


def may_start_again(who: Principal, run: Run) -> bool:
    """Whether this caller may start the workflow of the run once more."""
    workflow = Workflow.objects.filter(name=run.workflow, listed=True).first()
    return workflow is not None and may_start(who, workflow)


def startable_or_404(who: Principal, name: str) -> Workflow:
    """The workflow, for somebody who may start it; NotVisible or Forbidden for the others."""
    workflow = Workflow.objects.filter(name=name, listed=True).first()
    if workflow is None or not (
        may_start(who, workflow) or visible_workflows(who).filter(pk=name).exists()
    ):
        raise NotVisible(f"There is no workflow {name!r} here.")
    if not may_start(who, workflow):
        raise Forbidden(f"{workflow.title} is not yours to start.")
    return workflow


def need_priority(who: Principal, workflow: Workflow, priority: int | None) -> None:
    """Raise Forbidden for a run that would go before others of its workflow.

    Anybody may start one that goes behind them; before them goes who operates everybody's runs.
    """
    if priority is None or priority <= workflow.priority:
        return
    is_program = bool(who.key_name) and who.user is None
    if not who.has_scope("operate") or not (is_program or who.has_perm("runs.change_run")):
        raise Forbidden(
            f"A priority above {workflow.priority} is for those who operate the runs of all."
        )


def may_operate(who: Principal, run: Run) -> bool:
    """Cancel and resume: whoever started the run, and operators."""
    if not who.is_known or not who.has_scope("operate"):
        return False
    if who.owns(run.started_by) or who.has_perm("runs.change_run"):
        return True
    return bool(who.key_name) and who.user is None


def need_operate(who: Principal, run: Run) -> None:
    """Raise Forbidden for somebody who may only look."""
    if not may_operate(who, run):
        raise Forbidden(f"Run {run.short} is not yours to cancel or resume.")
