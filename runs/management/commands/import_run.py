from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import imports, record_command
from runs.portable import RecordRefused


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
            lines, unreadable = record_command.read_record(Path(options["file"]))
            if unreadable:
                raise RecordRefused(f"It is torn: {record_command.unreadable_text(unreadable)}")
            run = imports.import_run(lines, other_people=options["other_people"])
        except (OSError, RecordRefused) as error:
            raise CommandError(f"{options['file']} is not imported. {error}") from error
        self.stdout.write(str(run.pk))
