"""Run a job in one process: in memory, or with a record in a file beside it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Literal

from runs.drivers import places, resume
from runs.drivers.callbacks import create_callback_client
from runs.drivers.compact import compact
from runs.drivers.interrupts import SignalWatch
from runs.drivers.jsonl import Record, RecordFile
from runs.drivers.monitor.server import Monitor
from runs.drivers.monitor.view import MonitorView
from runs.drivers.options import AUTO, HEARTBEAT_MS, Options
from runs.drivers.ports import Callbacks, Sink
from runs.drivers.result import RunResult
from runs.drivers.session import MemorySession, OnEvent
from runs.drivers.signal import Signal
from runs.drivers.supervision.register import register
from runs.kernel.retries import MAX_WAIT_MS
from runs.report.prices import Prices
from runs.shapes.job import Job, to_job

__all__ = ["RunResult", "arun", "run"]

logger = logging.getLogger(__name__)


def run(
    job: Any,
    *,
    record_to: str | os.PathLike[str] | None = None,
    resume: bool = False,
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
    environment: Any = None,
    source: str | os.PathLike[str] | None = None,
    heartbeat_ms: int = HEARTBEAT_MS,
    on_limit: Literal["auto", "wait", "exit", "fail"] = "auto",
    max_wait_ms: int = MAX_WAIT_MS,
    budget: int | Mapping[str, Any] | None = None,
    monitor: bool | None = None,
    supervise: bool = False,
    prices: Prices | None = None,
    cost: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> RunResult:
    """Run the job to its end, or to a question nobody has answered (runs.md section 11).

    `record_to` names the file of the record, or is "auto" for `.obversa/records/<run id>.jsonl`
    under `cwd`; `resume` takes up the record at that path. Raises before anything starts for
    options that cannot be (R192), and RunBusy when another session holds the record (R226);
    after that every failure is an outcome. `on_limit` says whether a step that meets a limit
    waits (`auto`: up to `max_wait_ms`), pauses the run (`exit`) or fails (runs.md R262).
    `budget` is the number of tokens that calls of engines may use over all sessions, or a mapping
    with `limit`, `headroom` (what one call may need) and `soft` (R266).

    `environment` is brought up for the run's folder before the job begins and taken down after
    it, whatever came of it (R198).

    `monitor` serves the run's own page on a free port of this machine, until
    `result.monitor.close()`; its address is told by one `monitor` event. `supervise` registers
    the run under `~/.obversa/runs/<run id>`, and serves the page unless `monitor` is False.

    `prices` estimate what a call costs whose engine does not say it (R272): dollars per million
    tokens by model. `cost`, `{prices, baseline_model?}`, asks for the report in `result.cost`.

    A `dry_run` calls no tool that changes anything and records what it would have done.

    In the main thread SIGINT and SIGTERM are recorded as `run:abort` and then do what they would
    have done (R258): Ctrl-C raises KeyboardInterrupt out of this call once the steps at work have
    ended, and a handler of the host's own may set `signal` to end the run as aborted instead.
    """
    options = Options(
        record_to=record_to,
        resume=resume,
        params=params,
        state=state,
        callbacks=callbacks,
        on_callback=on_callback,
        on_event=on_event,
        signal=signal,
        cwd=cwd,
        run_id=run_id,
        engine=engine,
        engines=engines,
        memory=memory,
        environment=environment,
        source=source,
        heartbeat_ms=heartbeat_ms,
        on_limit=on_limit,
        max_wait_ms=max_wait_ms,
        budget=budget,
        monitor=monitor,
        supervise=supervise,
        prices=prices,
        cost=cost,
        dry_run=dry_run,
    )
    return _session(to_job(job), options).run()


async def arun(job: Any, **options: Any) -> RunResult:
    """`run` for callers with an event loop; the loop stays free while the job works.

    Cancelling the task that awaits it (as Ctrl-C does under `asyncio.run`) cancels the run and
    waits for the steps at work.
    """
    session = await asyncio.to_thread(_session, to_job(job), Options(**options))
    loop = asyncio.get_running_loop()
    with SignalWatch(session.wakes.note) as watch:
        session.wakes.pass_on = lambda number: _in_loop(loop, watch.pass_on, number)
        work = asyncio.create_task(asyncio.to_thread(session.run))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            session.cancel.set()
            await asyncio.wait([work])
            raise


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[int], None], number: int) -> None:
    loop.call_soon_threadsafe(call, number)


def _session(job: Job, options: Options) -> MemorySession:
    """A session that has its record, if it is to have one."""
    run_id = options.run_id
    if run_id is None and (options.record_to == AUTO or options.supervise):
        run_id = places.generated_run_id(job)
    file = _record_file(options, run_id)
    past = Record() if file is None else file.past
    params = resume.params_of(past) if options.params is None else options.params
    run_id = run_id or resume.run_id_of(past)
    client = create_callback_client() if options.callbacks is None else options.callbacks
    sinks: list[Sink] = []
    if options.supervise:
        assert run_id is not None
        listed = register(job.shape, run_id, options.workspace.absolute())
        sinks += [] if listed is None else [listed]
    view = MonitorView(job.shape, client, run_id) if options.has_page else None
    sinks += [] if view is None else [view]
    session = MemorySession(
        job,
        params=params,
        shared={} if options.state is None else options.state,
        client=client,
        attended=options.on_callback == "wait",
        on_event=options.on_event,
        cancel=Signal() if options.signal is None else options.signal,
        workspace=options.workspace,
        run_id=run_id,
        more={
            "engine": options.engine,
            "engines": dict(options.engines or {}),
            "memory": options.memory,
            "on_limit": options.on_limit,
            "max_wait_ms": options.max_wait_ms,
        },
        record_file=file,
        start=options.start_facts,
        budget=options.budget,
        sinks=sinks,
        heartbeat_ms=0 if file is None and not options.supervise else options.heartbeat_ms,
        monitor=None if view is None else _page(view, client),
        pricing=options.pricing,
        environment=options.environment,
    )
    if view is not None:
        view.usage = session.usage
    return session


def _page(view: MonitorView, client: Callbacks) -> Monitor | None:
    try:
        return Monitor(view, client)
    except OSError as error:
        logger.error("page not served error=%s", error)  # noqa: TRY400 - the run goes on without it
        return None


def _record_file(options: Options, run_id: str | None) -> RecordFile | None:
    if options.record_to is None:
        return None
    shorten = None
    path = Path(options.record_to).absolute()
    try:
        if options.record_to == AUTO:
            assert run_id is not None
            path, shorten = places.auto_record(options.workspace.absolute(), run_id), compact
        return RecordFile.open(path, resume=options.resume, shorten=shorten)
    except OSError as error:
        if options.resume:
            raise
        # Nothing is lost that was there before: the run goes on without a record (runs.md R223).
        logger.error("record not opened path=%s error=%s", path, error)  # noqa: TRY400 - see above
        return None
