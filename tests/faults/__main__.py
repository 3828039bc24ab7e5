"""`python -m tests.faults`: every fault on every broker, and a table of what came of it.

Needs PostgreSQL, Redis and RabbitMQ; makes a database of its own. Exit code 1 when a run ended
wrong or an effect was done twice that nobody was asked about.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COLUMNS = (
    ("fault", "fault"),
    ("broker", "broker"),
    ("faults", "faults"),
    ("runs", "runs"),
    ("wrong", "ended wrong"),
    ("twice", "done twice"),
    ("asked", "asked"),
    ("twice_after_asking", "twice after asking"),
    ("seconds", "seconds"),
)
WIDE = 46


def main(arguments: list[str]) -> int:
    """Print the table; the exit code says whether all went well."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--runs", type=int, default=12, help="runs per fault")
    parser.add_argument("--broker", choices=("redis", "amqp", "both"), default="both")
    parser.add_argument("--only", default="", help="faults whose name has this text")
    options = parser.parse_args(arguments)
    brokers = ("redis", "amqp") if options.broker == "both" else (options.broker,)

    from tests.faults.home import rows

    # Asked to stop, it leaves no database behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    found: list[dict[str, Any]] = []
    _print_row(dict(COLUMNS))
    with database() as url:
        for broker in brokers:
            for row in rows(broker, url, "--runs", str(options.runs), "--only", options.only):
                _print_row(row)
                for text in row["told"]:
                    print(f"    {text}", flush=True)
                found.append(row)
    names = ("faults", "runs", "wrong", "twice", "asked", "twice_after_asking")
    _print_row({"fault": "all", **{name: sum(row[name] for row in found) for name in names}})
    return int(not found or any(row["wrong"] or row["twice"] for row in found))


@contextmanager
def database() -> Iterator[str]:
    """A PostgreSQL database for this run alone."""
    os.environ["OBVERSA_TEST_DATABASE"] = "postgres"
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    from django.db import connection

    from tests.faults.home import address_of

    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield address_of(connection.settings_dict)
    finally:
        connection.creation.destroy_test_db(os.environ["DATABASE_URL"].rpartition("/")[2], 0)


def _print_row(row: dict[str, Any]) -> None:
    cells = [str(row["fault"]).ljust(WIDE), str(row.get("broker", "")).ljust(6)]
    cells += [str(row.get(name, "")).rjust(len(title)) for name, title in COLUMNS[2:]]
    print("  ".join(cells), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
