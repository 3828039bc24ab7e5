"""Run a job in one process, with the record in memory."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, Literal

from runs.drivers.callbacks import create_callback_client
from runs.drivers.ports import Callbacks
from runs.drivers.session import MemorySession, OnEvent, RunResult
from runs.drivers.signal import Signal
from runs.kernel.errors import LoopError
from runs.kernel.jsonable import JsonValueError, snapshot
from runs.shapes.job import to_job

__all__ = ["RunResult", "arun", "run"]

_RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")


def run(
    job: Any,
    *,
    params: Mapping[str, Any] | None = None,
    state: MutableMapping[str, Any] | None = None,
    callbacks: Callbacks | None = None,
    on_callback: Literal["exit", "wait"] = "exit",
    on_event: OnEvent | None = None,
    signal: Any = None,
    cwd: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    engine: Any = None,
    engines: Mapping[str, Any] | None = None,
    memory: Any = None,
) -> RunResult:
    """Run the job to its end, or to a question nobody has answered (runs.md section 11).

    Raises before anything starts for options that cannot be (R192); after that every failure is
    an outcome.
    """
    if on_callback not in ("exit", "wait"):
        raise ValueError('on_callback is "exit" or "wait".')
    if run_id is not None and not _RUN_ID.match(run_id):
        raise LoopError("CONFIG", f"run_id {run_id!r} is not of the form [a-z0-9][a-z0-9-]*.")
    if isinstance(engine, str) and engine not in (engines or {}):
        raise LoopError("CONFIG", f"the run has no engine named {engine!r}.")
    frozen = snapshot({} if params is None else params)
    if not isinstance(frozen, Mapping):
        raise JsonValueError("params is no JSON object.", "")
    session = MemorySession(
        to_job(job),
        params=frozen,
        shared={} if state is None else state,
        client=create_callback_client() if callbacks is None else callbacks,
        attended=on_callback == "wait",
        on_event=on_event,
        cancel=Signal() if signal is None else signal,
        workspace=Path(Path.cwd() if cwd is None else cwd),
        run_id=run_id,
        more={"engine": engine, "engines": dict(engines or {}), "memory": memory},
    )
    return session.run()


async def arun(job: Any, **options: Any) -> RunResult:
    """`run` for callers with an event loop; the loop stays free while the job works."""
    return await asyncio.to_thread(run, job, **options)
