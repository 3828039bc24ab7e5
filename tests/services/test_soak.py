"""Short forms of `python -m tests.soak`: everything is killed, and a version is rolled out."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import need
from tests.services.conftest import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.postgres, pytest.mark.timeout(1800)]
MINUTES = os.environ.get("OBVERSA_TEST_SOAK_MINUTES", "5")


def soak(*options: str) -> str:
    """The table of a soak; its servers are its own."""
    need("nginx")
    need("redis-server")
    need("rabbitmq-server")
    need("chromium")
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *options],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout


def count(table: str, name: str) -> int:
    (line,) = (line for line in table.splitlines() if line.startswith(name))
    return int(line.rsplit(None, 1)[1])


def test_whatever_is_killed_nothing_is_lost_doubled_or_missed() -> None:
    # RabbitMQ carries the work and Redis rings the bell, so both are among those that are killed.
    table = soak("--minutes", MINUTES, "--broker", "rabbitmq", "--kill-every", "5")

    assert count(table, "runs started") == count(table, "runs ended") > 0
    assert count(table, "answers accepted") > 0
    assert count(table, "events shown in Chromium") > 0
    assert count(table, "people at Chromium") == 2
    killed = {line[:16].strip() for line in table.splitlines()}
    assert killed.issuperset({"postgres", "redis", "rabbitmq", "nginx", "web 1", "web 2"}), table


def test_a_new_version_is_rolled_out_under_load_and_nobody_outside_notices() -> None:
    table = soak(
        *("--roll", "--minutes", "1.5", "--people", "16", "--pages", "1", "--kill-every", "3")
    )

    assert count(table, "runs started") == count(table, "runs ended") > 0
    assert count(table, "calls that failed") == 0
    assert count(table, "starts on the new schema by the version before") > 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that PostgreSQL's own user may look into, too."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_the_soak_leaves_no_process_and_no_folder(open_folder: Path) -> None:
    """One that is asked to stop while it starts ends its servers too."""
    environment = os.environ | {"TMPDIR": str(open_folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.soak", "--minutes", "1", "--broker", "redis"],
        cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + 60
        while not list(open_folder.glob("obversa-soak-*/redis.log")):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 143
    finally:
        process.kill()

    assert not list(open_folder.glob("obversa-soak-*"))
    here = str(open_folder)
    left = [
        one.name for one in Path("/proc").iterdir() if one.name.isdigit() and here in _words(one)
    ]
    assert left == []


def _words(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:
        return ""
