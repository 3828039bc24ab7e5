"""The product as people have it: one `manage.py up` on the database of the tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
# What the server of the tests offers beside the shipped workflow.
WORKFLOWS = ("tests.browser.acting_flow", "tests.browser.paper")


class Product:
    """A server that can be killed and started again on the same port."""

    def __init__(self, home: Path) -> None:
        self.home = self._home = home
        self._log = home / "up.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
            "OBVERSA_HOME": str(self._home),
            "OBVERSA_SECRET_KEY": settings.SECRET_KEY,
            "DATABASE_URL": _address_of_the_test_database(),
            "EMAIL_URL": "memorymail://",
            "OBVERSA_WORKFLOWS": ",".join(WORKFLOWS),
        }
        command = [sys.executable, "manage.py", "up", "--port", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"up did not start:\n{self.log()}")
            time.sleep(0.1)

    def stop(self, *, at_once: bool = False) -> None:
        """End it in order, or as a power cut would."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGKILL if at_once else signal.SIGTERM)
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _address_of_the_test_database() -> str:
    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{facts['NAME']}"
    host, port = facts.get("HOST") or "127.0.0.1", facts.get("PORT") or 5432
    secret = f":{facts['PASSWORD']}" if facts.get("PASSWORD") else ""
    return f"postgres://{facts['USER']}{secret}@{host}:{port}/{facts['NAME']}"
