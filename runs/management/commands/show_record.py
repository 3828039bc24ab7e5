from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import folding, queries, wire, words
from runs.actors import actor_labels
from runs.kernel.events import Event
from runs.models import Event as EventRow
from runs.models import Run
from runs.replies import json_text


class Command(BaseCommand):
    help = "Show the record of a run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", help="its id, or the beginning of it that no other run has")
        parser.add_argument("--json", action="store_true", help="one event per line, as the API")

    def handle(self, *args: Any, **options: Any) -> None:
        run = self._run(options["run"])
        rows = EventRow.objects.filter(run=run).order_by("seq")
        events = [folding.to_event(row) for row in rows]
        if options["json"]:
            lines = iter([json_text(wire.event(event)) for event in events])
        else:
            lines = self._told(run, events)
        for line in lines:
            self.stdout.write(line)

    def _run(self, prefix: str) -> Run:
        if not queries.is_id_prefix(prefix):
            raise CommandError(f"{prefix!r} is no beginning of a run's id: 4 digits or more.")
        found = list(Run.objects.filter(queries.id_range(prefix))[:2])
        if not found:
            raise CommandError(f"There is no run {prefix}.")
        if len(found) > 1:
            raise CommandError(f"More than one run begins with {prefix}. Give more digits.")
        return found[0]

    def _told(self, run: Run, events: list[Event]) -> Iterator[str]:
        labels = actor_labels(event.actor for event in events)
        yield f"{run.title or run.workflow or run.stream}  {run.pk}  {run.display_status}"
        for event in events:
            text = words.event_text(event, labels.get(event.actor, event.actor))
            at = wire.event(event)["ts"]
            place = "/".join(event.path)
            yield "  ".join(
                part for part in (f"{event.seq:>5}", at, event.kind, place, text) if part
            )
