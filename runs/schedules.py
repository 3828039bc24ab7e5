"""Runs that a schedule starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runs import services
from runs.models import Run
from runs.record import database_now

ACTOR: Final = "system"
_FORMS: Final[Mapping[str, str]] = {
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%dT%H",
    "minute": "%Y-%m-%dT%H:%M",
}


def start(workflow: str, params: Mapping[str, Any] | None = None, *, once_per: str = "") -> Run:
    """Start the workflow; `once_per` a day, hour or minute of the database's clock, in UTC.

    A second message for the same span, from a second scheduler or a broker that hands one out
    twice, gives the run that is there. Without `once_per` every message starts a run.
    """
    if once_per and once_per not in _FORMS:
        raise ValueError(f"once_per is one of {', '.join(_FORMS)}, not {once_per!r}.")
    key = ""
    if once_per:
        key = f"schedule {workflow} {database_now().strftime(_FORMS[once_per])}"
    return services.start_run(
        workflow, params, actor=ACTOR, surface="schedule", idempotency_key=key
    )
