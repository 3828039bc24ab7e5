from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from obversa_site.backups import taking


class Command(BaseCommand):
    help = "Copy the database and the files of runs into a new folder, while everything runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder that is not there yet")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["folder"]
        try:
            manifest = taking.back_up(folder, self.stdout.write)
        except (taking.BackupRefused, OSError) as trouble:
            raise CommandError(str(trouble)) from trouble
        self.stdout.write(f"{folder / manifest['database']}, files={manifest['files']}")
        key = "secret.key in OBVERSA_HOME" if taking.key_is_in_home() else "OBVERSA_SECRET_KEY"
        self.stdout.write(f"Not in it: {key}. Keep that too, and apart: seals belong to it.")
