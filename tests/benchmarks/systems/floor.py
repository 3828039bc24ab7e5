"""The bare SQL of a cycle: every fact committed when it is one, and nothing else.

Six transactions: started; A claimed; A done and the question asked; answered; B claimed; B done.
That a step's start is committed before the step begins is what the record of Obversa promises, so
it is in the floor. All statements of a transaction go out in one pipeline.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any, ClassVar

import psycopg

from tests.benchmarks.systems import hands

TABLES = """
CREATE TABLE runs (id uuid PRIMARY KEY, status text NOT NULL, last_seq int NOT NULL);
CREATE TABLE events (
    run uuid NOT NULL, seq int NOT NULL, kind text NOT NULL, payload jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (run, seq)
);
CREATE TABLE attempts (
    run uuid NOT NULL, step text NOT NULL, status text NOT NULL, PRIMARY KEY (run, step)
);
CREATE TABLE questions (run uuid PRIMARY KEY, status text NOT NULL, answer jsonb);
CREATE INDEX questions_pending ON questions (run) WHERE status = 'pending';
"""
RUN = "INSERT INTO runs VALUES (%s, 'running', 1)"
EVENT = "INSERT INTO events (run, seq, kind, payload) VALUES (%s, %s, %s, %s)"
READY = "INSERT INTO attempts VALUES (%s, %s, 'ready')"
CLAIM = "UPDATE attempts SET status = 'running' WHERE run = %s AND step = %s AND status = 'ready'"
END = "UPDATE attempts SET status = 'done' WHERE run = %s AND step = %s AND status = 'running'"
ASK = "INSERT INTO questions VALUES (%s, 'pending', NULL)"
ANSWER = (
    "UPDATE questions SET status = 'answered', answer = %s WHERE run = %s AND status = 'pending'"
)
HEAD = "UPDATE runs SET status = %s, last_seq = %s WHERE id = %s"


class Floor(hands.Hands):
    name: ClassVar[str] = "bare SQL"
    given: ClassVar[str] = (
        f"psycopg in processes of {hands.THREADS} threads; six transactions a cycle with the rows "
        "of one event each, the run, its attempts and its question; no queue, no decision, no check"
    )
    module = "tests.benchmarks.systems.floor"

    def open(self, workers: int) -> None:
        self.url = self.stage.database("floor")
        with psycopg.connect(self.url) as connection:
            connection.execute(TABLES)
        super().open(workers)


def main() -> None:
    """Serve as one of the processes."""
    local = threading.local()

    def commit(*statements: tuple[str, tuple[Any, ...]]) -> None:
        if not hasattr(local, "connection"):
            local.connection = psycopg.connect(sys.argv[1], prepare_threshold=0)
        with local.connection.transaction(), local.connection.pipeline():
            for statement, values in statements:
                local.connection.execute(statement, values)

    def begin(run: str) -> None:
        commit((RUN, (run,)), (EVENT, (run, 1, "run:start", "{}")), (READY, (run, "a")))
        commit(
            (CLAIM, (run, "a")), (EVENT, (run, 2, "step:start", "{}")), (HEAD, ("running", 2, run))
        )
        told = json.dumps({"began": time.time()})
        commit(
            (END, (run, "a")),
            (EVENT, (run, 3, "step:end", told)),
            (ASK, (run,)),
            (EVENT, (run, 4, "asked", "{}")),
            (HEAD, ("waiting", 4, run)),
        )

    def answer(run: str) -> float:
        commit(
            (ANSWER, ('{"approved": true}', run)),
            (EVENT, (run, 5, "answered", '{"approved": true}')),
            (READY, (run, "b")),
            (HEAD, ("running", 5, run)),
        )
        commit(
            (CLAIM, (run, "b")), (EVENT, (run, 6, "step:start", "{}")), (HEAD, ("running", 6, run))
        )
        began = time.time()
        commit(
            (END, (run, "b")),
            (EVENT, (run, 7, "step:end", json.dumps({"began": began}))),
            (EVENT, (run, 8, "run:end", "{}")),
            (HEAD, ("passed", 8, run)),
        )
        return began

    hands.serve(begin, answer)


if __name__ == "__main__":
    main()
