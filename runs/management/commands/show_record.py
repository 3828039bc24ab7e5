from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import exports, queries, record_command
from runs.actors import actor_labels
from runs.models import Run
from runs.projection import moment
from runs.report.lines import format_event
from runs.report.text import one_line
from runs.wire import time


class Command(BaseCommand):
    help = "Show the record of a run, by its id, or of a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "record", help="a run's id, or the beginning of it that no other run has; or a file"
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="the summary as one JSON object")
        form.add_argument("--events", action="store_true", help="one line for each event")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["record"]
        if not options["events"] and Path(name).is_file():
            events, unreadable = record_command.found(name)
            if unreadable:
                self.stderr.write(record_command.unreadable_text(unreadable))
            self.stdout.write(record_command.page(events, as_json=options["json"]), ending="")
            return
        try:
            run = queries.run_named(name)
        except queries.RunNotNamed as error:
            raise CommandError(str(error)) from error
        if options["events"]:
            for line in _each(run):
                self.stdout.write(line)
        else:
            lines = exports.record_lines(run)
            self.stdout.write(record_command.page(lines, as_json=options["json"]), ending="")


def _each(run: Run) -> Iterator[str]:
    """Every event with its number, its time and who did it."""
    events = list(exports.events_of(run))
    labels = actor_labels(event.actor for event in events)
    for event in events:
        at = time(moment(event.ts))
        who = one_line(labels.get(event.actor, event.actor))
        yield f"{event.seq:>5}  {at}  {format_event(event)}  ({who})"
