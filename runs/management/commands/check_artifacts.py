from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.artifacts.checks import Checked, check
from runs.plaintext import visible


class Command(BaseCommand):
    help = "Read every stored file and archived record; names those that are missing or changed."

    def handle(self, *args: Any, **options: Any) -> None:
        told = Checked()
        for fault in check(told):
            self.stdout.write(f"{fault.what} {fault.digest} {visible(fault.whose)}")
        line = f"files={told.files} bytes={told.bytes} faults={told.faults}"
        if told.faults:
            raise CommandError(line)
        self.stdout.write(line)
