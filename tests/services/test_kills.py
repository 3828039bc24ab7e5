"""Killed at any commit and started again, a run ends the same and does nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.services.flow import expected

ROOT = Path(__file__).resolve().parents[2]


def kill_everywhere(workflow: str, folder: Path, *moments: str) -> list[dict[str, Any]]:
    """What became of the run for every commit at which its process was killed."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "CELERY_BROKER_URL", "CHANNEL_REDIS_URL")
    } | {
        "OBVERSA_HOME": str(folder / "home"),
        "OBVERSA_WORKFLOWS": "tests.services.flow",
        "OBVERSA_LEASE_SECONDS": "5",
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
    }
    command = [sys.executable, "-m", "tests.services.crashing", workflow, str(folder), *moments]
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("workflow", "moments"), [("repeats", ["after"]), ("asks", ["before", "after"])]
)
def test_a_run_killed_at_any_commit_ends_the_same(
    tmp_path: Path, workflow: str, moments: list[str]
) -> None:
    whole, *killed = kill_everywhere(workflow, tmp_path, *moments)

    assert len(killed) == whole["commits"] * len(moments)
    # A step that another follows ends in the commit in which that one begins.
    assert whole["commits"] >= 10
    for one in [whole, *killed]:
        told = f"killed {one['moment']}: {one}"
        assert one["again"] == 0, told
        assert one["status"] == "passed", told
        assert sorted(one["effects"]) == expected(workflow), told
        assert one["seqs_have_no_gap"], told
        assert one["rows_off"] == 0, told
        counts = one["counts"]
        assert (counts["run:start"], counts["run:end"], counts["dag:kickback"]) == (1, 1, 1), told
        assert counts["step:refused"] == 0, told
    assert {one["died"] for one in killed} == {-signal.SIGKILL}
