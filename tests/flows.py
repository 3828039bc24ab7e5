"""Workflows published straight from a test, and hands that move their runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import close_old_connections

from runs import publishing, registry, services, sweep
from runs.attempts import folders, worker
from runs.attempts.starts import Due, Start
from runs.kernel.callbacks import SubmitResult
from runs.kernel.events import Event as KernelEvent
from runs.kernel.gate import CallbackRequest
from runs.models import Attempt, Event, Run, Step
from runs.stored import RecordCallbacks
from runs.turns import folding

STARTER = "user:1"


def offer(
    job: Any,
    *,
    name: str | None = None,
    params: Any = None,
    audience: Mapping[str, Any] | None = None,
    title: str = "A flow of a test",
) -> str:
    """Publish the job and list it in the catalogue; returns the workflow's name."""
    registry.load()
    before = publishing.offered()
    publishing.publish(job, title=title, params=params, audience=audience, name=name)
    changed = [made for key, made in publishing.offered().items() if before.get(key) is not made]
    registry.enlist(changed[0])
    return changed[0].name


def start(job: Any, params: Mapping[str, Any] | None = None, **options: Any) -> Run:
    """Publish the job and start it; `options` go to start_run, `schema` is its params."""
    name = offer(job, params=options.pop("schema", None), name=options.pop("name", None))
    options.setdefault("actor", STARTER)
    return services.start_run(name, params, **options)


def ready(run: Run | None = None) -> list[int]:
    """The attempts that wait for a worker, oldest first."""
    found = Attempt.objects.filter(status=Attempt.Status.READY, run__held_reason="")
    if run is not None:
        found = found.filter(run=run)
    return list(found.order_by("pk").values_list("pk", flat=True))


def work(run: Run | None = None, *, limit: int = 500) -> Run | None:
    """Be the worker until nothing is ready; returns the run as it is then."""
    done = 0
    while found := ready(run):
        for pk in found:
            worker.execute(pk)
            done += 1
            assert done <= limit, "The run does not come to rest."
    return fresh(run) if run is not None else None


def claimed(run: Run) -> int:
    """Claim the run's oldest ready attempt, and die."""
    due = Due.find(ready(run)[0])
    assert due is not None
    made = registry.published(due.workflow)
    assert made is not None
    assert worker.claim(Start(due, made))
    return due.pk


def ran(job: Any, params: Mapping[str, Any] | None = None, **options: Any) -> Run:
    """Start the job and do everything that can be done without a person."""
    run = start(job, params, **options)
    work(run)
    return fresh(run)


def fresh(run: Run) -> Run:
    """The run as the database has it."""
    return Run.objects.get(pk=run.pk)


def sleeps(run: Run) -> bool:
    """Whether the run waits for its time."""
    return fresh(run).wake_at is not None


def wake(run: Run) -> None:
    """Wait for the run's time, as the sweep does."""
    at = fresh(run).wake_at
    assert at is not None
    time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
    sweep.advance(run.pk)


def pending(run: Run) -> list[CallbackRequest]:
    """The run's open questions."""
    return RecordCallbacks(run.pk).list_pending()


def answer(
    run: Run,
    response: Mapping[str, Any],
    *,
    request_id: str | None = None,
    router: str = "user:2",
) -> SubmitResult:
    """Claim and answer one open question, the only one unless it is named."""
    client = RecordCallbacks(run.pk, actor=router, surface="browser")
    open_ones = client.list_pending()
    wanted = [one for one in open_ones if request_id in (None, one.request_id)]
    assert len(wanted) == 1, [one.request_id for one in open_ones]
    token = client.claim(wanted[0].request_id, router).claim_token
    assert token is not None
    return client.submit(wanted[0].request_id, token, router, wanted[0].digest, dict(response))


def events(run: Run, *kinds: str) -> list[KernelEvent]:
    """The record of the run, or its events of some kinds."""
    rows = Event.objects.filter(run_id=run.pk).order_by("seq")
    return [folding.to_event(row) for row in (rows.filter(kind__in=kinds) if kinds else rows)]


def kinds(run: Run) -> list[str]:
    return [event.kind for event in events(run)]


def steps(run: Run) -> dict[str, Step]:
    """The run's steps by the names of their nodes, inner ones as outer/inner."""
    return {"/".join(row.path[1::2]) or row.name: row for row in Step.objects.filter(run_id=run.pk)}


def statuses(run: Run) -> dict[str, str]:
    return {name: row.status for name, row in steps(run).items()}


def forget(run_id: UUID | None = None) -> None:
    """Be a process that has just started."""
    folding.forget()


def at_once(count: int, do: Callable[[int], Any]) -> list[Any]:
    """Call `do(index)` from `count` threads at the same moment; what each returned or raised."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def one(index: int) -> None:
        try:
            barrier.wait(timeout=30)
            results[index] = do(index)
        except Exception as error:  # noqa: BLE001  the test looks at it
            results[index] = error
        finally:
            close_old_connections()

    threads = [threading.Thread(target=one, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return results


@contextmanager
def in_background(do: Callable[[], Any]) -> Iterator[threading.Thread]:
    """Run `do` in another thread while the block runs, and wait for it at the end."""

    def one() -> None:
        try:
            do()
        finally:
            close_old_connections()

    thread = threading.Thread(target=one)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(timeout=60)
        assert not thread.is_alive()


def folder(run: Run) -> str:
    """Where the run's steps work."""
    return str(folders.folder_of(run.pk))
