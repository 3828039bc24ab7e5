"""The options of `run`: checked together, before anything has happened (runs.md R192)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runs.drivers import places
from runs.drivers.budget import Budget
from runs.drivers.ports import Callbacks
from runs.drivers.pricing import Pricing
from runs.kernel.errors import LoopError
from runs.kernel.jsonable import JSONValue, JsonValueError, snapshot
from runs.kernel.retries import MAX_WAIT_MS, ON_LIMIT
from runs.report.prices import Prices

AUTO: Final = "auto"
HEARTBEAT_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `run` was given; making one raises for what cannot be."""

    record_to: str | os.PathLike[str] | None = None
    resume: bool = False
    params: Mapping[str, JSONValue] | None = None
    state: MutableMapping[str, Any] | None = None
    callbacks: Callbacks | None = None
    on_callback: str = "exit"
    on_event: Any = None
    signal: Any = None
    cwd: str | os.PathLike[str] | None = None
    run_id: str | None = None
    engine: Any = None
    engines: Mapping[str, Any] | None = None
    memory: Any = None
    environment: Any = None
    source: str | os.PathLike[str] | None = None
    heartbeat_ms: int = HEARTBEAT_MS
    on_limit: str = "auto"
    max_wait_ms: int = MAX_WAIT_MS
    budget: Any = None
    monitor: bool | None = None
    supervise: bool = False
    prices: Prices | None = None
    cost: Mapping[str, Any] | None = None
    dry_run: bool = False
    pricing: Pricing = field(init=False, default_factory=Pricing)
    source_facts: Mapping[str, JSONValue] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.on_callback not in ("exit", "wait"):
            raise ValueError('on_callback is "exit" or "wait".')
        if self.resume and (self.record_to is None or self.record_to == AUTO):
            raise TypeError("resume needs record_to, the path of the record to take up.")
        object.__setattr__(self, "budget", Budget.of(self.budget))
        if self.on_limit not in ON_LIMIT:
            raise ValueError(f"on_limit is one of {', '.join(ON_LIMIT)}.")
        if not _is_count(self.max_wait_ms):
            raise ValueError("max_wait_ms is a whole number of milliseconds.")
        if not _is_count(self.heartbeat_ms):
            raise ValueError("heartbeat_ms is a whole number of milliseconds, 0 for none.")
        if self.run_id is not None and not places.RUN_ID.match(self.run_id):
            text = f"run_id {self.run_id!r} is not of the form [a-z0-9][a-z0-9-]*."
            raise LoopError("CONFIG", text)
        if isinstance(self.engine, str) and self.engine not in (self.engines or {}):
            raise LoopError("CONFIG", f"the run has no engine named {self.engine!r}.")
        object.__setattr__(self, "pricing", Pricing.of(self.prices, self.cost))
        if self.source is not None:
            object.__setattr__(self, "source_facts", _source(Path(self.source).absolute()))
        if self.params is not None:
            object.__setattr__(self, "params", _object(self.params))

    @property
    def start_facts(self) -> dict[str, JSONValue]:
        """What `run:start` says of how the run is to be driven; nothing of what is usual."""
        limits: dict[str, JSONValue] = {"onLimit": self.on_limit, "maxWaitMs": self.max_wait_ms}
        usual = self.on_limit == "auto" and self.max_wait_ms == MAX_WAIT_MS
        dry: dict[str, JSONValue] = {"dryRun": True} if self.dry_run else {}
        told = {**self.source_facts, **dry}
        return told if usual else {**told, "limits": limits}

    @property
    def has_page(self) -> bool:
        """Whether the run serves its own page (runs.md R289)."""
        return self.supervise if self.monitor is None else self.monitor

    @property
    def workspace(self) -> Path:
        """The run's folder."""
        return Path.cwd() if self.cwd is None else Path(self.cwd)


def _object(params: object) -> Mapping[str, JSONValue]:
    frozen = snapshot(params)
    if not isinstance(frozen, Mapping):
        raise JsonValueError("params is no JSON object.", "")
    return frozen


def _source(path: Path) -> dict[str, JSONValue]:
    """Which file the workflow came from, and what was in it."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise LoopError("CONFIG", f"the source {path} cannot be read: {error}") from error
    return {"source": {"path": str(path), "sha256": digest}}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
