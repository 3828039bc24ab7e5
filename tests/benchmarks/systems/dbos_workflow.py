"""dbos: a durable workflow that publishes what it waits for and waits in `recv`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable
from typing import Any, ClassVar

import psycopg

from tests.benchmarks.stage import wait_for
from tests.benchmarks.systems.base import System, load

QUEUE = "cycles"
POLL_SECONDS = 0.05
# Two processes, and the others that are measured, fit into the 100 connections of a server.
POOL = 10
VERSION = "bench"
QUESTION, ANSWER = "question", "answer"
WAITING = """
SELECT e.workflow_uuid FROM dbos.workflow_events e
JOIN dbos.workflow_status s USING (workflow_uuid) WHERE s.status = 'PENDING'
"""
DONE = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"
LAUNCHED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


class Dbos(System):
    name: ClassVar[str] = "dbos"
    given: ClassVar[str] = (
        f"worker processes with {POOL} connections and as many threads as the library wants, on a "
        f"queue that is looked at every {POLL_SECONDS * 1000:.0f} ms (its default is a second); "
        "started and answered by DBOSClient; `set_event` says that it asks, `recv` waits, "
        "LISTEN/NOTIFY wakes it"
    )

    def open(self, workers: int) -> None:
        dbos = load("dbos")
        self.url = self.stage.database("dbos")
        for index in range(workers):
            words = (__name__, self.url, f"worker-{index}")
            process = self.stage.process(*words, talks=True)
            self.processes.append(process)
            assert process.stdout is not None
            wait_for(process.stdout.readline)
        self._client = dbos.DBOSClient(system_database_url=self.url)
        self._looks = psycopg.connect(self.url, autocommit=True)

    def begin(self) -> str:
        options = {"workflow_name": "cycle", "queue_name": QUEUE, "app_version": VERSION}
        return str(self._client.enqueue(options).get_workflow_id())

    def waiting(self) -> Iterable[str]:
        return [run for (run,) in self._looks.execute(WAITING)]

    def answer(self, run: str) -> None:
        self._client.send(run, True, ANSWER)

    def done(self) -> int:
        found = self._looks.execute(DONE).fetchone()
        assert found is not None
        return int(found[0])

    def began(self, run: str) -> float | None:
        status = self._client.retrieve_workflow(run).get_status()
        return float(status.output) if status.status == "SUCCESS" else None

    def close(self) -> None:
        self._client.destroy()
        self._looks.close()
        for process in self.processes:
            self.stage.end(process)


def main() -> None:
    """Work as one of the processes until it is ended."""
    found = load("dbos")
    dbos: Any = found.DBOS
    url, executor = sys.argv[1:]

    def cycle() -> float:
        dbos.run_step({"name": "a"}, time.time)
        dbos.set_event(QUESTION, "Go on?")
        dbos.recv(ANSWER, timeout_seconds=3600)
        return float(dbos.run_step({"name": "b"}, time.time))

    dbos(
        config={
            "name": "bench",
            "system_database_url": url,
            "executor_id": executor,
            "application_version": VERSION,
            "log_level": "WARNING",
            "sys_db_pool_size": POOL,
        }
    )
    dbos.workflow(name="cycle")(cycle)
    dbos.launch()
    dbos.register_queue(QUEUE, polling_interval_sec=POLL_SECONDS)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
