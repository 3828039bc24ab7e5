"""`obversa-record`: a run's record as a page, from a file or by the run's id (runs.md R283)."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from runs.drivers.jsonl import read_record
from runs.kernel.events import Event
from runs.report.render import render_record
from runs.report.summary import summarize_record
from runs.report.text import one_line

USAGE: Final = "usage: obversa-record PATH|RUN-ID [--json]"
_RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
Events = Iterable[Event | dict[str, Any]]


class NoRecord(LookupError):
    """Nothing that can be read has this name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the page, or the summary with `--json`; 1 for a name or a flag that is none."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    flags = [one for one in given if one.startswith("-")]
    names = [one for one in given if not one.startswith("-")]
    if flags in (["--help"], ["-h"]):
        _print(f"{USAGE}\n")
        return 0
    if len(names) != 1 or set(flags) - {"--json"}:
        _complain(USAGE)
        return 1
    try:
        events, unreadable = found(names[0])
    except (NoRecord, OSError) as error:
        _complain(f"obversa-record: {error}")
        return 1
    if unreadable:
        _complain(unreadable_text(unreadable))
    _print(page(events, as_json="--json" in flags))
    return 0


def page(events: Events, *, as_json: bool) -> str:
    """The record as the commands show it."""
    if as_json:
        return json.dumps(summarize_record(events), indent=2) + "\n"
    return render_record(events)


def unreadable_text(count: int) -> str:
    """How many lines of a file are no events."""
    return f"{count} line{'' if count == 1 else 's'} could not be read."


def found(name: str) -> tuple[Events, int]:
    """The events under this name, and how many lines were no events; raises NoRecord.

    A path is a file of JSON lines. A run's id is looked up among the registered runs, then among
    the records this folder keeps, then in the service's database where there is one.
    """
    for path in _files(name):
        if path.is_file():
            record = read_record(path)
            return record.events, record.unreadable_count
    if _RUN_ID.match(name) and _has_database():
        return _in_database(name), 0
    raise NoRecord(f"there is no file and no run {name!r}.")


def _files(name: str) -> Iterable[Path]:
    yield Path(name)
    if _RUN_ID.match(name):
        home = Path(os.environ.get("OBVERSA_HOME") or "~/.obversa").expanduser()
        yield home / "runs" / name / "events.jsonl"
        yield Path(".obversa") / "records" / f"{name}.jsonl"


def _has_database() -> bool:
    """Whether this process is told of a service, or stands where one keeps its database."""
    if os.environ.get("DJANGO_SETTINGS_MODULE") or os.environ.get("DATABASE_URL"):
        return True
    home = Path(os.environ.get("OBVERSA_HOME") or ".obversa").expanduser()
    return (home / "obversa.sqlite3").is_file()


def _in_database(name: str) -> Events:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")
    import django
    from django.db import DatabaseError

    django.setup()
    from runs import exports, queries

    try:
        return list(exports.record_lines(queries.run_named(name)))
    except queries.RunNotNamed as error:
        raise NoRecord(str(error)) from error
    except DatabaseError as error:
        raise NoRecord(f"the database cannot be read: {error}") from error


def _print(text: str) -> None:
    """Write what the terminal can show of it; whoever closes the pipe has read enough."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> None:
    sys.stderr.write(f"{one_line(text)}\n")


if __name__ == "__main__":
    sys.exit(main())
