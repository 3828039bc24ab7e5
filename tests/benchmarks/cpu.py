"""Processor time by kind of process: what a busy machine does not change."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from django.db import connection

_TICK = os.sysconf("SC_CLK_TCK")


def spent() -> dict[str, float]:
    """Seconds so far of this process, its workers, and the database's processes for it."""
    found: defaultdict[str, float] = defaultdict(float)
    tree = {os.getpid(): "this process"}
    processes = dict(_processes())
    grown = True
    while grown:
        grown = False
        for pid, (parent, _) in processes.items():
            if parent in tree and pid not in tree:
                tree[pid] = "workers"
                grown = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        tree |= {pid: "postgresql" for (pid,) in cursor.fetchall()}
    for pid, name in tree.items():
        if pid in processes:
            found[name] += processes[pid][1]
    return found


def _processes() -> Iterator[tuple[int, tuple[int, float]]]:
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = place.read_text()
        except OSError:
            continue
        fields = text.rpartition(")")[2].split()
        parent, user, system = int(fields[1]), int(fields[11]), int(fields[12])
        yield int(place.parent.name), (parent, (user + system) / _TICK)
