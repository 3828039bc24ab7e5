from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import queries
from runs.archive import kept
from runs.archive.archiving import NotArchived, restore_run
from runs.turns.whole import RecordMoved


class Command(BaseCommand):
    help = "Bring an archived run back, event by event as it was."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="its id, or the beginning of it that no other run has")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = restore_run(queries.run_named(options["run"]).pk)
        except (queries.RunNotNamed, NotArchived, RecordMoved, *kept.UNREADABLE) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{run.pk} events={run.last_seq}")
