"""Where the fault suite runs: its home, its corner of a broker, and the process of the suite."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.needs import find

ROOT = Path(__file__).resolve().parents[2]
BROKERS = {"redis": "redis", "amqp": "rabbitmq"}


def address_of(database: Mapping[str, Any]) -> str:
    """The DATABASE_URL of a PostgreSQL database that Django knows by these settings."""
    login = f"{database['USER']}:{database['PASSWORD']}".rstrip(":")
    return f"postgres://{login}@{database['HOST']}:{database['PORT'] or 5432}/{database['NAME']}"


def rows(
    broker: str, database_url: str, *options: str, lease_seconds: float = 4.0
) -> Iterator[dict[str, Any]]:
    """Run the suite on this broker and database; what each fault came to, as it comes."""
    with tempfile.TemporaryDirectory(prefix="obversa-faults-") as home:
        command = [sys.executable, "-m", "tests.faults.suite", broker, *options]
        environment = _environment(Path(home), broker, database_url, lease_seconds)
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
                if process.wait(60):
                    raise RuntimeError(f"The suite on {broker} ended with {process.returncode}.")
            finally:
                process.terminate()


def _environment(
    home: Path, broker: str, database_url: str, lease_seconds: float
) -> dict[str, str]:
    gone = ("CHANNEL_REDIS_URL", "OBVERSA_BASE_URL")
    return {name: value for name, value in os.environ.items() if name not in gone} | {
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
        "DATABASE_URL": database_url,
        "CELERY_BROKER_URL": find(BROKERS[broker]).address,
        "OBVERSA_HOME": str(home),
        "OBVERSA_WORKFLOWS": "tests.faults.work",
        "OBVERSA_LEASE_SECONDS": str(lease_seconds),
        "OBVERSA_TEST_SCENE": str(home),
        "OBVERSA_TEST_CORNER": f"obversa-test-{secrets.token_hex(6)}",
        "OBVERSA_TEST_VISIBILITY": "5",
    }
