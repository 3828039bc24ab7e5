"""The files of docs/deploy name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

from gates import tasks
from runs import tasks as run_tasks

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "deploy"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
# Where the environment is read; DATABASE_URL and EMAIL_URL by a library's own functions.
READERS = "\n".join(
    (ROOT / "obversa_site" / name).read_text() for name in ("settings.py", "home.py")
)
NAMES = re.compile(r"\b((?:OBVERSA|CELERY|CHANNEL|DATABASE|EMAIL)_[A-Z_]*[A-Z])\b")
QUEUES = re.compile(r"-Q[, ]+\"?([a-z][a-z,]*)|obversa-worker@([a-z][a-z,]*)")


def test_there_are_files() -> None:
    assert len(FILES) >= 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_name_in_the_environment_is_one_that_is_read(path: Path) -> None:
    # A host is for the compose file itself to put together.
    named = set(NAMES.findall(path.read_text())) - {"OBVERSA_HOST"}

    assert [name for name in sorted(named) if f'"{name}"' not in READERS] == []


def test_the_queues_are_those_that_work_is_sent_to() -> None:
    named = set()
    for path in FILES:
        for found in QUEUES.findall(path.read_text()):
            named |= {name for name in "".join(found).split(",") if name}

    assert named == {queue.name for queue in settings.CELERY_TASK_QUEUES}


def test_what_goes_outside_is_told_on_its_own_queue() -> None:
    routes = {name: to["queue"] for name, to in settings.CELERY_TASK_ROUTES.items()}

    assert routes == {"runs.execute": "steps", "gates.notify": "notify", "gates.route": "notify"}
    known = {tasks.notify.name, tasks.route.name, run_tasks.execute.name}
    assert set(routes) == known


def test_the_guide_names_every_variable_of_the_example() -> None:
    guide = (ROOT / "docs" / "deploy.md").read_text()
    example = (FOLDER / "obversa.env").read_text()

    assert [name for name in NAMES.findall(example) if f"`{name}`" not in guide] == []
