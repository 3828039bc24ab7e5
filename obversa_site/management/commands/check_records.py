from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from obversa_site.backups.checking import check_records

SHOWN = 20


class Command(BaseCommand):
    help = "Follow every record, compare its rows, make and check the receipt of every answer."

    def handle(self, *args: Any, **options: Any) -> None:
        found = check_records(self.stdout.write)
        counts = {
            "runs": found.runs,
            "events": found.events,
            "receipts": found.receipts,
            "questions that wait": found.open_questions,
            "records that do not verify": len(found.records),
            "runs whose rows were off": len(found.rows),
            "receipts that do not verify": len(found.refused),
        }
        for name, count in counts.items():
            self.stdout.write(f"{name.ljust(30)}{count:>10}")
        for text in [*found.records, *found.rows, *found.refused][:SHOWN]:
            self.stderr.write(text)
        if not found.is_whole:
            raise CommandError("Not everything is whole.")
