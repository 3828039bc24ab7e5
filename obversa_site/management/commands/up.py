from __future__ import annotations

import fcntl
import os
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from gates.notify import sender
from gates.rehiding import hide_all
from gates.routers import worker as routers
from obversa_site import stopping
from obversa_site.serving import CannotListen, first_administrator, link_for, serve
from obversa_site.static import Files
from runs.embedded import EmbeddedWorker


class Command(BaseCommand):
    help = "Everything in one process: pages, worker and sweeper on the embedded default."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--workflows", metavar="DIR", help="a folder with workflow files")
        parser.add_argument("--no-worker", action="store_true", help="pages only")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["workflows"]:
            folder = Path(options["workflows"])
            if not folder.is_dir():
                raise CommandError(f"--workflows: {folder} is no folder.")
            settings.OBVERSA_WORKFLOWS_DIR = str(folder.resolve())
        with _only_one():
            stopping.listen()
            call_command("migrate", verbosity=0, interactive=False)
            # Nobody else is here who could not read them.
            hide_all()
            # Messages that go out lead here, also where the port is another one than usual.
            settings.OBVERSA_BASE_URL = _address(options["host"], options["port"])
            Files.mark_names()
            worker = None if options["no_worker"] else EmbeddedWorker()
            if worker is not None:
                worker.start()
                sender.threads.begin()
                routers.threads.begin()
            try:
                serve(options["host"], options["port"], partial(self._tell, options["host"]))
            except CannotListen as trouble:
                raise CommandError(f"{trouble} Use another --port.") from trouble
            finally:
                if worker is not None:
                    worker.stop()
                    sender.threads.end()
                    routers.threads.end()
        self.stdout.write("Stopped.")

    def _tell(self, host: str, port: int) -> None:
        """Say where it is, once somebody who goes there is let in."""
        address = settings.OBVERSA_BASE_URL = _address(host, port)
        self.stdout.write(f"Obversa runs at {address}/")
        self.stdout.write(f"Sign in once by this link:  {link_for(first_administrator(), address)}")
        self.stdout.write("Stop with Ctrl-C; nothing is lost. Twice stops at once.")
        self.stdout.flush()


def _address(host: str, port: int) -> str:
    if settings.OBVERSA_BASE_URL_GIVEN:
        return str(settings.OBVERSA_BASE_URL)
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104  only compared
    return f"http://{shown}:{port}"


class _only_one:  # noqa: N801  reads as a statement
    """One `up` per home: a second one would take the first one's steps for interrupted."""

    def __enter__(self) -> None:
        path = Path(settings.OBVERSA_HOME) / "up.lock"
        self._file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise CommandError(f"Another `up` uses {settings.OBVERSA_HOME}.") from error

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
