from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import registry, services
from runs.errors import RunsError
from runs.kernel.jsonable import JsonValueError, parse_json
from runs.kernel.outcomes import exit_code_for
from runs.models import Run
from runs.publishing import MAX_PRIORITY

_EXIT = {
    Run.Status.PASSED: "pass",
    Run.Status.FAILED: "fail",
    Run.Status.EXHAUSTED: "exhausted",
    Run.Status.CANCELLED: "aborted",
    Run.Status.WAITING: "paused",
    Run.Status.PAUSED: "paused",
}


class Command(BaseCommand):
    help = "Start a workflow. A worker (or `up`) does the steps."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workflow")
        parser.add_argument("--params", default="{}", help="a JSON object, or @FILE that holds one")
        parser.add_argument(
            "--wait",
            action="store_true",
            help="stay until it ends or waits: 0 pass, 1 fail, 2 exhausted, 75 waits, 130 aborted",
        )

        parser.add_argument(
            "--conversation", default="", help="what the run belongs to, for what is allowed in it"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="call no tool that changes anything"
        )
        parser.add_argument(
            "--priority",
            type=int,
            help=f"-{MAX_PRIORITY} to {MAX_PRIORITY}; higher goes first (the workflow's own)",
        )
        parser.add_argument(
            "--idempotency-key",
            default="",
            metavar="KEY",
            help="start it once: the same key again is the same run, whatever became of it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        given = options["params"]
        try:
            text = Path(given[1:]).read_text() if given.startswith("@") else given
            params = parse_json(text)
        except (OSError, JsonValueError) as error:
            raise CommandError(f"--params: {error}") from error
        if not isinstance(params, dict):
            raise CommandError("--params: give a JSON object.")
        if abs(options["priority"] or 0) > MAX_PRIORITY:
            raise CommandError(f"--priority: a number from -{MAX_PRIORITY} to {MAX_PRIORITY}.")
        registry.refresh(alone=False)
        try:
            run = services.start_run(
                options["workflow"],
                params,
                actor="system",
                surface="command",
                conversation=options["conversation"][:200],
                dry_run=options["dry_run"],
                priority=options["priority"],
                idempotency_key=options["idempotency_key"],
            )
        except RunsError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(str(run.pk))
        if options["wait"]:
            self._wait(run)

    def _wait(self, run: Run) -> None:
        while True:
            run.refresh_from_db()
            if run.status in _EXIT:
                break
            time.sleep(0.25)
        outcome = run.outcome or {}
        self.stdout.write(
            json.dumps({"status": run.display_status, "summary": outcome.get("summary")})
        )
        code = exit_code_for(_EXIT[Run.Status(run.status)])
        if code:
            raise SystemExit(code)
