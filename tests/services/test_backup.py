"""A backup that is taken while everything runs, restored elsewhere: nothing is missing there."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from tests.faults.home import address_of
from tests.services.conftest import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]
RUNS = 25


@dataclass
class Place:
    """An installation: its home, its database, and what its processes are told."""

    home: Path
    database_url: str
    key: str

    @property
    def environment(self) -> dict[str, str]:
        gone = ("CELERY_BROKER_URL", "CHANNEL_REDIS_URL", "OBVERSA_BASE_URL")
        return {name: text for name, text in os.environ.items() if name not in gone} | {
            "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
            "DATABASE_URL": self.database_url,
            "OBVERSA_HOME": str(self.home),
            "OBVERSA_SECRET_KEY": self.key,
            "OBVERSA_WORKFLOWS": "tests.services.flow",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def manage(self, *words: str) -> str:
        done = self.run("manage.py", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def under_load(self) -> Iterator[subprocess.Popen[str]]:
        with (
            (self.home / "load.log").open("w") as log,
            subprocess.Popen(
                [sys.executable, "-m", "tests.services.loading", "load"],
                cwd=ROOT, env=self.environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            ) as process,
        ):  # fmt: skip
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """On SQLite a file of its own, on PostgreSQL the database of the test."""
    home = tmp_path / "here"
    home.mkdir()
    url = address_of(connection.settings_dict) if connection.vendor == "postgresql" else ""
    place = Place(home, url, secrets.token_urlsafe(40))
    place.manage("migrate", "--verbosity", "0")
    return place


@pytest.fixture
def elsewhere(tmp_path: Path, here: Place) -> Iterator[Place]:
    """A home and a database with nothing in them; the secret key came with somebody."""
    home = tmp_path / "elsewhere"
    home.mkdir()
    if connection.vendor != "postgresql":
        yield Place(home, "", here.key)
        return
    name = f"test_restored_{secrets.token_hex(4)}"
    with psycopg.connect(here.database_url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield Place(home, f"{here.database_url.rpartition('/')[0]}/{name}", here.key)
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def restore(backup: Path, place: Place) -> None:
    """The commands of docs/deploy.md."""
    shutil.copytree(backup / "artifacts", place.home / "artifacts")
    if place.database_url:
        command = ["pg_restore", "--no-owner", "-d", place.database_url]
        subprocess.run([*command, str(backup / "database.dump")], check=True)
    else:
        shutil.copy(backup / "database.sqlite3", place.home / "obversa.sqlite3")


def figures(told: str) -> dict[str, int]:
    lines = [line.rsplit(None, 1) for line in told.splitlines() if not line.startswith("runs=")]
    return {name.strip(): int(count) for name, count in lines}


def test_a_backup_under_load_is_whole_elsewhere_and_work_goes_on_there(
    here: Place, elsewhere: Place, tmp_path: Path
) -> None:
    with here.under_load() as load:
        assert load.stdout is not None
        for line in load.stdout:
            if int(line) >= RUNS:
                break
        told = here.manage("backup", str(tmp_path / "backup"))
        assert load.poll() is None, (here.home / "load.log").read_text()[-3000:]

    restore(tmp_path / "backup", elsewhere)
    elsewhere.manage("migrate", "--verbosity", "0")
    found = figures(elsewhere.manage("check_records"))
    files = elsewhere.manage("check_artifacts")

    assert "OBVERSA_SECRET_KEY" in told
    manifest = json.loads((tmp_path / "backup" / "manifest.json").read_text())
    assert manifest["files"] >= 1
    assert found["runs"] >= RUNS
    assert found["receipts"] >= 1
    assert found["questions that wait"] >= 1
    assert found["records that do not verify"] == 0
    assert found["runs whose rows were off"] == 0
    assert found["receipts that do not verify"] == 0
    assert "faults=0" in files
    # What was under way when it was taken goes on: work that had begun counts as interrupted.
    done = elsewhere.run("-m", "tests.services.loading", "carry-on")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == f"{{'passed': None}} {found['runs']}"
    assert figures(elsewhere.manage("check_records"))["records that do not verify"] == 0


def test_a_folder_that_is_there_is_left_alone(here: Place, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "letter.txt").write_text("mine")

    refused = here.run("manage.py", "backup", str(tmp_path / "kept"))

    assert refused.returncode == 1
    assert "is there already" in refused.stderr
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["letter.txt"]


def test_a_record_that_was_altered_after_the_backup_is_found(here: Place) -> None:
    started = here.manage("start_run", "repeats")
    assert started
    alter = (
        "from django.db import connection as c\n"
        "with c.cursor() as k:\n"
        "    k.execute(\"UPDATE runs_run SET head = 'x'\")\n"
    )
    assert here.run("manage.py", "shell", "-c", alter).returncode == 0

    checked = here.run("manage.py", "check_records")

    assert checked.returncode == 1
    assert "records that do not verify" in checked.stdout
    assert "Not everything is whole." in checked.stderr
