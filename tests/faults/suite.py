"""All faults on one broker, in the process that starts the runs, sweeps and answers.

Started by the command and by the tests with the product's own settings on a database of theirs.
Prints one line of JSON per fault.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

DEFAULT_PORTS = {"redis": 6379, "amqp": 5672}


@dataclass(kw_only=True)
class Row:
    """What one fault on one broker came to."""

    fault: str
    broker: str
    faults: int
    runs: int
    wrong: int = 0
    twice: int = 0
    twice_after_asking: int = 0
    asked: int = 0
    seconds: float = 0
    told: list[str] = field(default_factory=list)


def be_hasty() -> None:
    """Look again for unclaimed work much sooner than the product does: more can go wrong."""
    from runs import sweep

    sweep.RESEND_AFTER = timedelta(seconds=0.5)  # type: ignore[misc]  # final for the product


@contextmanager
def corner() -> Iterator[None]:
    """Leave nothing at the broker."""
    from tests.faults.app import app

    name = os.environ["OBVERSA_TEST_CORNER"]
    try:
        yield
    finally:
        url = os.environ["CELERY_BROKER_URL"]
        if url.startswith("redis"):
            import redis

            with redis.Redis.from_url(url) as client:
                for key in client.scan_iter(f"{name}*"):
                    client.delete(key)
        else:
            with app.connection_for_write() as connection:
                channel: Any = connection.default_channel
                channel.queue_delete(name)
                channel.exchange_delete(name)


def tried(fault: str, broker: str, play: object) -> Row:
    """Try one fault and judge its runs."""
    from tests.faults import scene, verdict
    from tests.faults.faults import FAULTS
    from tests.faults.play import Play, Stuck

    assert isinstance(play, Play)
    began, told = time.monotonic(), []
    scene.folder().mkdir()
    try:
        FAULTS[fault](play)
    except (Stuck, AssertionError) as error:
        told.append(str(error))
    found = [verdict.judge(run, play.expected(run)) for run in play.runs]
    row = Row(
        fault=fault,
        broker=broker,
        faults=len(scene.notes("faults")),
        runs=len(play.runs),
        wrong=sum(bool(one.wrong) for one in found) or len(told),
        twice=sum(len(one.twice) for one in found),
        twice_after_asking=sum(len(one.twice_after_asking) for one in found),
        asked=sum(one.asked for one in found),
        seconds=round(time.monotonic() - began, 1),
        told=told + [text for one in found for text in one.wrong + one.twice],
    )
    scene.folder().rename(scene.folder().parent / f"over-{began}")
    return row


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("broker", choices=DEFAULT_PORTS)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)

    import tests.faults.app  # noqa: F401  sets up what the rest needs
    from runs import registry
    from tests.faults import faults
    from tests.faults.play import Play
    from tests.faults.wire import Wire
    from tests.faults.workers import Workers

    # Asked to stop, it leaves no worker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    be_hasty()
    registry.refresh()
    names = faults.SHORT[options.broker] if options.short else tuple(faults.FAULTS)
    names = tuple(
        name
        for name in names
        if options.only in name and (options.broker == "redis" or name not in faults.ONLY_REDIS)
    )
    wire = Wire(os.environ["CELERY_BROKER_URL"], DEFAULT_PORTS[options.broker])
    workers = Workers(wire.url, Path(os.environ["OBVERSA_TEST_SCENE"]) / "workers.log")
    with corner():
        try:
            for name in names:
                # Fresh ones: a fault is not to blame for what the one before left behind.
                if not options.short or not workers.alive:
                    workers.close()
                    workers.start(2)
                play = Play(workers, wire, count=options.runs, is_short=options.short)
                row = tried(name, options.broker, play)
                print(json.dumps(asdict(row)), flush=True)  # noqa: T201  who started this reads it
        finally:
            workers.close()
            wire.close()


if __name__ == "__main__":
    main(sys.argv[1:])
