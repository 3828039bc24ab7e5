"""What people and programs do to runs: start, cancel, resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError

from runs import backlog, dispatch, record, tries
from runs.attempts.leases import leases
from runs.errors import (
    IdempotencyConflict,
    NothingToResume,
    NothingToRetry,
    ParamsRefused,
    RunEnded,
    WorkflowBroken,
    WorkflowUnknown,
)
from runs.inputs.validation import faults_of, with_defaults
from runs.kernel.events import EventKind
from runs.kernel.graph import leaf_count
from runs.kernel.jsonable import JsonValueError, json_equal, sha256_bytes, snapshot, thaw
from runs.models import Attempt, Run
from runs.people import quotas
from runs.record import Turn
from runs.turns import admission, folding, offers
from runs.turns.offers import Offer

MAX_KEY: Final = 300


def start_run(
    workflow: str,
    params: Mapping[str, Any] | None = None,
    *,
    actor: str,
    surface: str = "",
    labels: Mapping[str, str] | None = None,
    idempotency_key: str = "",
    conversation: str = "",
    dry_run: bool = False,
    priority: int | None = None,
    rerun_of: Run | None = None,
    facts: Mapping[str, Any] | None = None,
    begin: Callable[[Turn], None] | None = None,
) -> Run:
    """Start the workflow; the same key by the same actor gives the same run.

    `conversation` names what the run belongs to: an approval may be given for all of it. A dry run
    calls no tool that changes anything. Without a `priority` it has its workflow's. `facts` are
    more fields of `run:start`, and `begin` may record more before anything is decided.
    """
    offer, definition = _offered(workflow, actor)
    given = _checked_params(offer, params)
    if len(idempotency_key) > MAX_KEY or "\0" in idempotency_key:
        idempotency_key = sha256_bytes(idempotency_key.encode())
    if idempotency_key:
        earlier = Run.objects.filter(started_by=actor, idempotency_key=idempotency_key).first()
        if earlier is not None:
            return _same_start(earlier, workflow, given, conversation, dry_run=dry_run)
    quotas.need_room_beside(offer.under_way)
    run = Run(
        workflow=offer.name,
        title=offer.title,
        definition_id=definition,
        audience_id=offer.audience_id,
        params=given,
        labels=dict(labels or {}),
        conversation=conversation,
        started_by=actor,
        idempotency_key=idempotency_key,
        rerun_of=rerun_of,
        total_count=leaf_count(folding.shape_of(definition)),
        priority=offer.priority if priority is None else priority,
    )
    if offer.may_be_limited and admission.limits_of(offer.name, offer.teams):
        run.admission = admission.OUTSIDE

    def start(turn: Turn) -> None:
        told: dict[str, Any] = {
            "runId": str(run.pk),
            "session": 1,
            "workflow": offer.name,
            "definition": definition,
            "params": given,
            **(facts or {}),
        }
        told |= _where_said(labels=run.labels, conversation=conversation, dryRun=dry_run)
        turn.append(EventKind.RUN_START, (), told)
        if begin is not None:
            begin(turn)

    # What is to be written besides the turn, and a place among others, is taken in a transaction.
    is_plain = begin is None and run.admission != admission.OUTSIDE
    clock = offer.clock if is_plain else None
    try:
        return tries.first_turn(run, start, actor=actor, surface=surface, clock=clock)
    except IntegrityError:
        earlier = Run.objects.filter(started_by=actor, idempotency_key=idempotency_key).first()
        if not idempotency_key or earlier is None:
            raise
        return _same_start(earlier, workflow, given, conversation, dry_run=dry_run)


def _offered(workflow: str, actor: str) -> tuple[Offer, str]:
    """The workflow as it is offered, and its definition; raises WorkflowUnknown, WorkflowBroken."""
    offer = offers.offer_of(workflow, actor, at_most=quotas.most_runs())
    if offer is None:
        raise WorkflowUnknown(f"There is no workflow {workflow!r} here.")
    if offer.error or offer.definition_id is None:
        raise WorkflowBroken(f"{workflow} does not import: {offer.error}")
    return offer, offer.definition_id


def _where_said(**facts: Any) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value}


def _checked_params(offer: Offer, params: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        given = thaw(snapshot({} if params is None else params))
    except JsonValueError as error:
        raise ParamsRefused(str(error), [("params", str(error))]) from error
    if not isinstance(given, dict):
        raise ParamsRefused("params is no JSON object.", [("params", "It is no JSON object.")])
    given = with_defaults(offer.params_schema, given)
    if faults := faults_of(offer.params_schema, given):
        told = "; ".join(f"{name}: {text}" for name, text in faults)
        raise ParamsRefused(f"The parameters do not fit: {told}", faults)
    return given


def _same_start(
    run: Run, workflow: str, params: dict[str, Any], conversation: str, *, dry_run: bool
) -> Run:
    same = (run.workflow, run.conversation) == (workflow, conversation)
    # What a dry run is asked for must not turn out to be the real one, nor the other way.
    dry = folding.state_at(run.pk, run.last_seq).dry_run
    if not same or dry is not dry_run or not json_equal(run.params, params):
        raise IdempotencyConflict(f"This idempotency key started run {run.short} with other input.")
    return run


def cancel_run(run_id: UUID, *, actor: str, surface: str = "", reason: str = "") -> Run:
    """Ask the run to stop: nothing new starts, running steps are told, questions are kept (D5)."""
    with record.turn(run_id, actor=actor, surface=surface) as turn:
        if turn.state.ended is not None and turn.run.is_final:
            raise RunEnded(f"Run {turn.run.short} has ended: {turn.run.status}.")
        if turn.run.kind == Run.Kind.EXTERNAL:
            raise RunEnded("A stream of questions is not cancelled: withdraw its questions.")
        if not turn.state.cancelled:
            turn.append(EventKind.RUN_CANCEL, (), {"reason": reason} if reason else {})
    leases.cancel(run_id)
    return turn.run


def resume_run(run_id: UUID, *, actor: str, surface: str = "") -> Run:
    """Go on with a run that was paused, held or cancelled; what has passed is not repeated."""
    with record.turn(run_id, actor=actor, surface=surface) as turn:
        run, state = turn.run, turn.state
        if run.kind == Run.Kind.EXTERNAL or (
            run.status not in (Run.Status.PAUSED, Run.Status.CANCELLED)
        ):
            raise NothingToResume(f"Run {run.short} is {run.display_status}; nothing to resume.")
        if state.ended is not None:
            facts = {"runId": str(run.pk), "session": state.session + 1}
            turn.append(EventKind.RUN_START, (), facts)
        else:
            turn.append(EventKind.RUN_RESUMED, (), {})
    ready = Attempt.objects.filter(run_id=run_id, status=Attempt.Status.READY)
    keys = list(ready.values_list("pk", flat=True))
    fits = backlog.room(len(keys))
    Attempt.objects.filter(pk__in=keys[fits:]).update(sent_at=None)
    dispatch.send(keys[:fits])
    return turn.run


def retry_now(run_id: UUID, *, actor: str, surface: str = "") -> Run:
    """Try at once what waits for its next try or round; the attempts left stay the same."""
    with record.turn(run_id, actor=actor, surface=surface) as turn:
        asleep = list(turn.state.waits)
        if not asleep or turn.state.ended is not None or turn.state.held:
            raise NothingToRetry(f"Nothing of run {turn.run.short} waits for its next try.")
        for path in asleep:
            turn.append(EventKind.RETRY_NOW, path)
    return turn.run
