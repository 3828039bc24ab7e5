"""Processor time and memory of processes: what a busy machine changes least."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.benchmarks.stage import server

Spent = Mapping[int, tuple[str, float]]
_TICK: Final = os.sysconf("SC_CLK_TCK")


def spent(roots: Iterable[int], database: str) -> Spent:
    """Seconds so far by process: this one, the given ones with their children, the database's."""
    processes = dict(_processes())
    of = {os.getpid(): "this process", **dict.fromkeys(roots, "workers")}
    grown = True
    while grown:
        grown = False
        for pid, (parent, _) in processes.items():
            if of.get(parent) == "workers" and pid not in of:
                of[pid] = "workers"
                grown = True
    with server() as connection:
        found = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s", (database,)
        )
        of |= {pid: "postgresql" for (pid,) in found}
    return {pid: (name, processes[pid][1]) for pid, name in of.items() if pid in processes}


def between(before: Spent, after: Spent) -> dict[str, float]:
    """Seconds by kind of process; one that has begun since counts whole."""
    found: defaultdict[str, float] = defaultdict(float)
    for pid, (name, seconds) in after.items():
        found[name] += seconds - before.get(pid, ("", 0.0))[1]
    return dict(found)


def memory(root: int) -> int:
    """Bytes of a process and its children; what they share is divided among them."""
    below = {root}
    grown = True
    while grown:
        found = {pid for pid, (parent, _) in _processes() if parent in below} - below
        below |= found
        grown = bool(found)
    return sum(map(_own, below))


def _own(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line[:4] == "Pss:")


def _processes() -> Iterator[tuple[int, tuple[int, float]]]:
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = place.read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        parent, user, system = int(fields[1]), int(fields[11]), int(fields[12])
        yield int(place.parent.name), (parent, (user + system) / _TICK)
