"""What a run in one process gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.kernel.events import Event
from runs.kernel.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What `run` returns (runs.md R200); `events` are this session's, `artifacts` by digest."""

    outcome: Outcome
    usage: Mapping[str, int]
    events: tuple[Event, ...]
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    record_path: str | None = None
    monitor: Any = None
    budget: Any = None
    cost: Any = None
