from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import record
from runs.archive import archiving
from runs.archive.archiving import MustStay
from runs.turns.whole import RecordMoved


def _span(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,5})([dh])", text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no span such as 90d or 12h")
    return timedelta(days=int(found[1])) if found[2] == "d" else timedelta(hours=int(found[1]))


class Command(BaseCommand):
    help = "Move the records of runs that ended long ago to the archive, out of the database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--older-than", type=_span, required=True, metavar="90d")
        parser.add_argument("--workflow", default="", help="only the runs of this workflow")
        parser.add_argument("--dry-run", action="store_true", help="say which, and do nothing")
        parser.add_argument(
            "--other-key",
            action="store_true",
            help="also records that were sealed with another secret key than today's",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        before = record.database_now() - options["older_than"]
        archived = stayed = failed = 0
        for run in list(archiving.ended_before(before, options["workflow"]).defer("outcome")):
            if options["dry_run"]:
                why = archiving.why_stay(run)
                self.stdout.write(f"{run.pk} {f'stays: {why}' if why else 'would be archived'}")
                archived, stayed = archived + (not why), stayed + bool(why)
                continue
            try:
                made = archiving.archive_run(run.pk, other_key=options["other_key"])
            except (MustStay, RecordMoved) as why_not:
                stayed += 1
                self.stdout.write(f"{run.pk} {why_not}")
            except OSError as error:
                failed += 1
                self.stderr.write(f"{run.pk} is not archived: {error}")
            else:
                archived += 1
                self.stdout.write(f"{run.pk} {made.archive_name} {made.archive_digest}")
        self.stdout.write(f"archived={archived} stayed={stayed} failed={failed}")
        if failed:
            raise CommandError(f"{failed} runs are not archived; they are as they were.")
