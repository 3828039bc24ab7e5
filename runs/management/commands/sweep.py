from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from runs import sweep


class Command(BaseCommand):
    help = "Repair what lost messages and dead workers left behind."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--loop", action="store_true", help="go on until stopped")
        parser.add_argument("--every", type=float, default=5.0, help="seconds between sweeps")

    def handle(self, *args: Any, **options: Any) -> None:
        while True:
            swept = sweep.sweep()
            if swept or not options["loop"]:
                self.stdout.write(
                    f"lost={swept.lost} resent={swept.resent} woken={swept.woken} "
                    f"other={swept.other}"
                )
            if not options["loop"]:
                return
            time.sleep(options["every"])
