"""`obversa-record`: a run's record as a page, from a file or by the run's id (runs.md R283).

`--verify` follows its chain instead, and `--verify-receipt` checks the receipt of an answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from runs.archive import portable
from runs.drivers.jsonl import read_record
from runs.kernel import chain
from runs.kernel.chain import Verdict
from runs.kernel.events import Event
from runs.kernel.jsonable import JsonValueError, parse_json
from runs.report.render import render_record
from runs.report.summary import summarize_record
from runs.report.text import one_line
from runs.report.verifying import ReceiptRefused, follow_export, verify_receipt

USAGE: Final = (
    "usage: obversa-record PATH|RUN-ID [--json|--verify]  or  "
    "obversa-record --verify-receipt RECEIPT [--record PATH|RUN-ID] [--key KEY]"
)
_VALUED: Final = frozenset({"--verify-receipt", "--record", "--key"})
_RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
Events = Iterable[Event | dict[str, Any]]


class NoRecord(LookupError):
    """Nothing that can be read has this name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the page, or the summary with `--json`; 1 for a name or a flag that is none."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    valued = _taken(given)
    flags = [one for one in given if one.startswith("-")]
    names = [one for one in given if not one.startswith("-")]
    if flags in (["--help"], ["-h"]):
        _print(f"{USAGE}\n")
        return 0
    if "--verify-receipt" in valued and not given:
        return _receipt(valued)
    if valued or len(names) != 1 or set(flags) - {"--json", "--verify"} or len(flags) > 1:
        _complain(USAGE)
        return 1
    if flags == ["--verify"]:
        return _verified(names[0])
    try:
        events, unreadable = found(names[0])
    except (NoRecord, OSError) as error:
        _complain(f"obversa-record: {error}")
        return 1
    if unreadable:
        _complain(unreadable_text(unreadable))
    _print(page(events, as_json="--json" in flags))
    return 0


def _taken(given: list[str]) -> dict[str, str]:
    """Take the flags that have a value, and their values, out of what was given."""
    taken = {}
    for flag in _VALUED:
        if flag in given and (at := given.index(flag)) + 1 < len(given):
            taken[flag] = given[at + 1]
            del given[at : at + 2]
    return taken


def _verified(name: str) -> int:
    """Follow the chain of a record; 1 when it does not fit, or has none."""
    try:
        found = verify(name)
    except (NoRecord, OSError) as error:
        _complain(f"obversa-record: {error}")
        return 1
    _print(f"{one_line(found.text)}\n")
    return 0 if found.ok else 1


def verify(name: str) -> Verdict:
    """Follow the chain of an exported file, or of a run in the service's database."""
    if Path(name).is_file():
        return follow_export(*_exported(Path(name)))
    if _RUN_ID.match(name) and _has_database():
        run = _run_in_database(name)
        from runs.archive import verifying

        return verifying.verify_run(run)
    raise NoRecord(f"there is no file and no run of the service {name!r}.")


def _exported(path: Path) -> tuple[Mapping[str, Any], list[Event | None]]:
    """The header of an exported file and its events, None for a line that is none."""
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    header = _object(lines[0]) if lines else None
    if header is None or header.get("kind") != portable.HEADER:
        raise NoRecord(f"{path} is no exported record; only those have hashes.")
    return header, [_exported_event(line) for line in lines[1:]]


def _exported_event(line: bytes) -> Event | None:
    try:
        return portable.from_line(_object(line) or {})
    except portable.RecordRefused:
        return None


def _object(text: bytes) -> Mapping[str, Any] | None:
    try:
        value = parse_json(text)
    except JsonValueError:
        return None
    return value if isinstance(value, Mapping) else None


def _receipt(valued: Mapping[str, str]) -> int:
    """Check a receipt, beside its record where one is named; 1 for whatever is wrong with it."""
    try:
        receipt = _object(Path(valued["--verify-receipt"]).read_bytes())
        hashes = dict(_hashes(valued["--record"])) if "--record" in valued else None
        told = verify_receipt(receipt, hashes=hashes, key=valued.get("--key", ""))
    except (NoRecord, OSError) as error:
        _complain(f"obversa-record: {error}")
        return 1
    except ReceiptRefused as refused:
        _print(f"{one_line(str(refused))}\n")
        return 1
    _print("".join(f"{one_line(line)}\n" for line in told))
    return 0


def _hashes(name: str) -> Iterator[tuple[int, str]]:
    """The chain of a record by number, made anew from its events."""
    if Path(name).is_file():
        events = [event for event in _exported(Path(name))[1] if event is not None]
    elif _RUN_ID.match(name) and _has_database():
        run = _run_in_database(name)
        from runs.archive import exports

        events = list(exports.events_of(run))
    else:
        raise NoRecord(f"there is no file and no run of the service {name!r}.")
    return enumerate(chain.hashes(events), 1)


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
    run = _run_in_database(name)
    from runs.archive import exports

    return list(exports.record_lines(run))


def _run_in_database(name: str) -> Any:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")
    import django
    from django.db import DatabaseError

    django.setup()
    from runs import queries

    try:
        return queries.run_named(name)
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
