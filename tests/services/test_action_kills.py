"""Killed between reserving, beginning and recording an approved action, it happens once (I74)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
POINTS = ("reserved", "started", "sent", "recorded")


def killed_everywhere(folder: Path) -> list[dict[str, Any]]:
    left_out = ("DATABASE_URL", "CELERY_BROKER_URL", "CHANNEL_REDIS_URL")
    environment = {
        **{name: value for name, value in os.environ.items() if name not in left_out},
        "OBVERSA_HOME": str(folder / "home"),
        "OBVERSA_WORKFLOWS": "tests.services.actions_flow",
        "OBVERSA_LEASE_SECONDS": "3",
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
    }
    command = [sys.executable, "-m", "tests.services.acting", str(folder), *POINTS]
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.timeout(900)
def test_an_approved_action_whose_worker_dies_happens_once(tmp_path: Path) -> None:
    told = killed_everywhere(tmp_path)

    assert len(told) == 3 * len(POINTS)
    for one in told:
        said = str(one)
        assert one["died"] == -signal.SIGKILL, said
        assert (one["again"], one["status"], one["execution"]) == (0, "passed", "succeeded"), said
        # The other side had it once, whatever was sent, and under the key that was approved.
        assert one["effects"] == [one["key"]], said
        assert set(one["sends"]) == {one["key"]}, said
        assert one["counts"]["approval.decided"] == 1, said
        by_itself = one["point"] != "recorded"
        assert one["counts"].get("tool.indeterminate", 0) == _in_doubt(one), said
        assert one["asked"].count("doubt") == _in_doubt(one), said
        assert one["asked"].count("reconcile") == (0 if by_itself else 1), said
        sends = 2 if (one["workflow"], one["point"]) == ("acts-replay", "sent") else 1
        assert len(one["sends"]) == sends, said


def _in_doubt(one: dict[str, Any]) -> int:
    """Only who recovers by nothing, and had begun, has to ask."""
    return int(one["workflow"] == "acts-none" and one["point"] in ("started", "sent"))
