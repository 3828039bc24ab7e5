from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import queries, record_command
from runs.archive import exports, kept, verifying
from runs.archive.portable import HEADER, Line
from runs.drivers.jsonl import read_record
from runs.kernel.moments import moment
from runs.people.actors import actor_labels
from runs.report.lines import format_event
from runs.report.text import moment_of, one_line, text
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
        form.add_argument(
            "--verify",
            action="store_true",
            help="follow its chain and name the first event that was altered",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["record"]
        if options["verify"]:
            self._verify(name)
            return
        events, unreadable = self._file(name) if Path(name).is_file() else (_run(name), 0)
        if unreadable:
            self.stderr.write(record_command.unreadable_text(unreadable))
        if options["events"]:
            for line in _each(events):
                self.stdout.write(line)
        else:
            self.stdout.write(record_command.page(events, as_json=options["json"]), ending="")

    def _verify(self, name: str) -> None:
        try:
            found = (
                record_command.verify(name)
                if Path(name).is_file()
                else verifying.verify_run(queries.run_named(name))
            )
        except (record_command.NoRecord, queries.RunNotNamed, OSError) as error:
            raise CommandError(str(error)) from error
        if not found.ok:
            raise CommandError(found.text)
        self.stdout.write(found.text)

    def _file(self, name: str) -> tuple[list[Line], int]:
        try:
            record = read_record(name)
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error}") from error
        # An exported event has its number; in other files it is that of the line.
        lines = [{"seq": event.seq} | event.to_wire() for event in record.events]
        return [line for line in lines if line["kind"] != HEADER], record.unreadable_count


def _run(name: str) -> list[Line]:
    try:
        return list(exports.record_lines(queries.run_named(name)))
    except (queries.RunNotNamed, *kept.UNREADABLE) as error:
        raise CommandError(str(error)) from error


def _each(events: list[Line]) -> Iterator[str]:
    """Every event with its number, its time and, where the record names one, who did it."""
    labels = actor_labels(text(event.get("actor")) for event in events)
    for event in events:
        at = moment_of(event.get("ts"))
        told = f"{text(event['seq']):>5}  {time(moment(at or 0))}  {format_event(event)}"
        actor = text(event.get("actor"))
        yield f"{told}  ({one_line(labels[actor])})" if actor else told
