from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from runs.archive.rebuild import rebuild
from runs.models import Run
from runs.record import RunUnknown


class Command(BaseCommand):
    help = "Make the rows of runs anew from their records; safe at any time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", nargs="*", help="ids of runs; without any, every run")

    def handle(self, *args: Any, **options: Any) -> None:
        repaired = runs = 0
        for run_id in _wanted(options["run"]):
            try:
                off = rebuild(run_id)
            except RunUnknown as error:
                raise CommandError(str(error)) from error
            if off:
                self.stdout.write(f"{run_id}: {off} rows were off")
            repaired += off
            runs += 1
        self.stdout.write(f"runs={runs} repaired={repaired}")


def _wanted(given: list[str]) -> Iterable[UUID]:
    if not given:
        return list(
            Run.objects.filter(archived_at=None).order_by("created_at").values_list("pk", flat=True)
        )
    try:
        return [UUID(text) for text in given]
    except ValueError as error:
        raise CommandError(f"{' '.join(given)} names no run by its id.") from error
