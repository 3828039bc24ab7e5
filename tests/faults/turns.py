"""What befalls a turn that is tried without the lock of its run (runs/tries.py), in a worker.

Each happens once for a run and a moment, where the suite's `try` says so; the workers' statements
are the product's own, and what breaks is the process or the connection around them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import OperationalError, connection

from tests.faults import scene

# How long one waits for another who tries the same run; most of the time nobody else does.
TOGETHER_SECONDS = 2.0


def befall() -> None:
    """Let this process's turns end as the scene says."""
    from runs.turns.batch import Batch

    door: Any = Batch
    send = door.send_alone

    def send_alone(batch: Any) -> None:
        said = scene.said("try")
        what, _, moment = said.partition(" ")
        if what == "together":
            _meet(_run_of(batch))
            send(batch)
            return
        if said and moment == "look" and _is_first(said, batch):
            _happen(what, send, batch, sends=False)
        elif said and moment == "commit" and _is_first(said, batch):
            _happen(what, send, batch, sends=True)
        else:
            send(batch)

    door.send_alone = send_alone


def _is_first(said: str, batch: Any) -> bool:
    """Once for each run and so many of its turns; every third, for a run has to get on."""
    run = _run_of(batch)
    scene.note(f"tried-{run}", str(os.getpid()))
    number = len(scene.notes(f"tried-{run}"))
    return number % 3 == 1 and scene.is_first(f"{said.replace(' ', '-')}-{run}-{number}")


def _run_of(batch: Any) -> str:
    """Which run the turn is of: the first that it writes is the run's own row."""
    row = batch._parts[0].rows[0]
    return str(row.get("if_pk") or row["id"])


def _happen(what: str, send: Callable[[Any], None], batch: Any, *, sends: bool) -> None:
    if sends:
        send(batch)
    scene.note("faults", f"{what} after the {'commit' if sends else 'look'}")
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sends:
        _end_session()
        raise OperationalError("the answer of the database was lost")
    _end_session()
    send(batch)


def _end_session() -> None:
    """Let the server end this process's session, as it does when it stops; returns once it has."""
    inner: Any = connection.connection
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [inner.info.backend_pid])


def _meet(run: str) -> None:
    """Wait here until another process tries the same run too, for a little."""
    own = str(os.getpid())
    scene.note(f"here-{run}", own)
    end = time.monotonic() + TOGETHER_SECONDS
    while time.monotonic() < end:
        here = scene.notes(f"here-{run}")[-2:]
        if len(set(here)) == 2:
            scene.note("faults", "tried at once")
            return
        time.sleep(0.005)
