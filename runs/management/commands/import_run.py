from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import record_command
from runs.archive import imports
from runs.archive.portable import RecordRefused
from runs.drivers.jsonl import read_record


class Command(BaseCommand):
    help = "Bring in a run from a file that export_run wrote; prints the run's id."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument(
            "--other-people",
            action="store_true",
            help="also when the record's numbers of people mean somebody else here",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            file = read_record(options["file"])
            if file.unreadable_count:
                told = record_command.unreadable_text(file.unreadable_count)
                raise RecordRefused(f"It is torn: {told}")
            lines = [event.to_wire() for event in file.events]
            run = imports.import_run(lines, other_people=options["other_people"])
        except (OSError, RecordRefused) as error:
            raise CommandError(f"{options['file']} is not imported. {error}") from error
        self.stdout.write(str(run.pk))
