from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import queries
from runs.archive import exports


class Command(BaseCommand):
    help = "Write a run's record to a file of JSON lines, which import_run reads back."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="its id, or the beginning of it that no other run has")
        parser.add_argument("file", nargs="?", help="a file that is not there yet; else to stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = queries.run_named(options["run"])
        except queries.RunNotNamed as error:
            raise CommandError(str(error)) from error
        if options["file"] is None:
            for line in exports.export_run(run):
                self.stdout.write(line)
            return
        try:
            _write(Path(options["file"]), exports.export_run(run))
        except OSError as error:
            raise CommandError(f"{options['file']} is not written: {error}") from error


def _write(path: Path, lines: Iterator[str]) -> None:
    """Write beside the file first: what has its name is whole."""
    if path.exists():
        raise FileExistsError("it is there already.")
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
