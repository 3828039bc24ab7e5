"""`python -m tests.soak --minutes 30`: everything is killed in turn; a table of what came of it.

Starts PostgreSQL, Redis, RabbitMQ and nginx of its own, which nobody else uses. Exit code 1 when a
run ended wrong, an answer was lost, an effect was doubled or a socket missed an event.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.soak.play import Options, play
from tests.soak.table import table


def main(arguments: list[str]) -> int:
    """Print the table; the exit code says whether all went well."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="rabbitmq")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--pages", type=int, default=2, help="people at a Chromium")
    parser.add_argument("--every", type=float, default=1.5, help="seconds from run to run")
    parser.add_argument("--kill-every", type=float, default=8.0, help="seconds from kill to kill")
    parser.add_argument("--seed", type=int, default=0, help="of who is killed when, and how")
    parser.add_argument("--roll", action="store_true", help="roll a new version out, kill nothing")
    parser.add_argument("--keep", type=Path, help="leave everything in this folder")
    given = parser.parse_args(arguments)
    options = Options(
        minutes=given.minutes,
        broker=given.broker,
        people=given.people,
        pages=given.pages,
        every=given.every,
        kill_every=given.kill_every,
        seed=given.seed,
        rolls=given.roll,
    )
    if given.keep is not None:
        given.keep.mkdir(parents=True)
        return _played(given.keep, options)
    with tempfile.TemporaryDirectory(prefix="obversa-soak-", ignore_cleanup_errors=True) as home:
        return _played(Path(home), options)


def _played(home: Path, options: Options) -> int:
    judgement, ledger = play(home, options)
    print(table(options, judgement, ledger), flush=True)
    return int(not judgement.is_well)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
