"""Run every test on SQLite, then every test that uses a database on PostgreSQL.

Settings are fixed for a process, so each database is a pytest run of its own. Arguments go to
all. The last line sums them up in pytest's own words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.needs import all_required, find
from tests.passes import PASSES

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("failed", "passed", "skipped", "xfailed", "xpassed", "warnings", "error")
NO_TESTS = 5
SOAK = "soak"


def main(arguments: list[str]) -> int:
    """Run the passes, print the sum, return the exit code."""
    started = time.monotonic()
    counts: Counter[str] = Counter()
    codes = _run_passes("sqlite", arguments, counts)
    trouble = find("postgres").trouble
    if not trouble:
        codes += _run_passes("postgres", arguments, counts)
    elif all_required():
        print(f"\nOBVERSA_TEST_ALL is set and PostgreSQL is not there: {trouble}")
        counts["error"] += 1
        codes.append(1)
    else:
        print(f"\nNot run on PostgreSQL: {trouble}")
    print(f"\n{_closing_line(counts, time.monotonic() - started)}", flush=True)
    return _verdict(codes)


def _run_passes(database: str, arguments: list[str], counts: Counter[str]) -> list[int]:
    """What leaves its mark on a process runs in processes of its own.

    The browser's driver keeps an event loop running, and a broker's connections outlive a test. A
    soak has the machine to itself.
    """
    return [
        _run_pass(database, [*(arguments or places), "-m", marked], counts)
        for marked, places in PASSES.items()
    ]


def _run_pass(database: str, arguments: list[str], counts: Counter[str]) -> int:
    print(f"\n--- {database}, {arguments[-1]} ---", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder) / "tally.json"
        environment = os.environ | {
            "OBVERSA_TEST_DATABASE": database,
            "OBVERSA_TEST_TALLY": str(tally),
        }
        command = [sys.executable, "-m", "pytest", *_alone_or_not(arguments[-1]), *arguments]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if tally.exists():
            counts.update(json.loads(tally.read_text(encoding="utf-8")))
        elif code not in (0, NO_TESTS):
            counts["error"] += 1
    return code


def _alone_or_not(marked: str) -> list[str]:
    """How many processes run a pass; a soak is one, and silent for longer than a stuck test is."""
    if marked == SOAK:
        return ["-n", "0", "-o", "faulthandler_timeout=0"]
    return ["-n", str(min(os.cpu_count() or 1, 4))]


def _verdict(codes: list[int]) -> int:
    bad = [code for code in codes if code not in (0, NO_TESTS)]
    if bad:
        return bad[0]
    return 0 if 0 in codes else NO_TESTS


def _closing_line(counts: Counter[str], seconds: float) -> str:
    words = [f"{counts[kind]} {_plural(kind, counts[kind])}" for kind in KINDS if counts[kind]]
    whole = f" {', '.join(words) or 'no tests ran'} in {seconds:.2f}s "
    return whole.center(80, "=")


def _plural(kind: str, count: int) -> str:
    if kind == "error" and count > 1:
        return "errors"
    return "warning" if kind == "warnings" and count == 1 else kind


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
