"""A new version is rolled out under load: its schema first, then every process, no server.

The next version has columns and an index that the version before knows nothing of. That one goes
on, and starts anew, on the schema of the next.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import threading
import time
from pathlib import Path

from tests.soak.house import House
from tests.soak.ledger import Ledger
from tests.soak.members import ROOT, NotReady

# The body of a step, in this version and in the next; the shape of its workflow stays.
BODY = "tests/faults/work.py"
NOW, NEXT = 'return "done"', 'return "done by the next version"'
VERSION = "obversa_site/__init__.py"
MODELS, MIGRATIONS = "runs/models.py", "runs/migrations"
META = "    class Meta:"
# What the next version's tables have more; it writes into the one of them that has a default.
MARK, STEP = "soak_mark", "9999_what_the_next_version_needs"
COLUMNS = {
    "Run": "models.CharField(max_length=20, null=True)",
    "Event": "models.CharField(max_length=20, null=True)",
    "Attempt": 'models.CharField(max_length=20, null=True, default="next")',
}
MIGRATION = """
from django.db import migrations, models

from obversa_site.migrating import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "{before}")]
    operations = [
        *(
            migrations.AddField(name, "soak_mark", models.CharField(max_length=20, null=True))
            for name in ("run", "event", "attempt")
        ),
        AddIndexBeside("event", models.Index(fields=["soak_mark"], name="event_soak_mark")),
    ]
"""
# Processes of the version before that start anew on the next one's schema.
ANEW = ("web 1", "worker 1", "worker 3")


def next_version(folder: Path) -> Path:
    """The code as it is here, with another body of a step and another version, in a new folder."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, names.split("\0")):
        source = ROOT / name
        if source.is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    body = (folder / BODY).read_text()
    assert NOW in body
    (folder / BODY).write_text(body.replace(NOW, NEXT))
    with (folder / VERSION).open("a") as file:
        file.write('\nVERSION = "next"\n')
    models = (folder / MODELS).read_text()
    for name, column in COLUMNS.items():
        before, head, after = models.partition(f"class {name}(models.Model):")
        assert head
        models = before + head + after.replace(META, f"    {MARK} = {column}\n\n{META}", 1)
    (folder / MODELS).write_text(models)
    (folder / MIGRATIONS / f"{STEP}.py").write_text(MIGRATION.format(before=last_migration()))
    return folder


def last_migration() -> str:
    """The one after which the next version's comes."""
    return max(one.stem for one in (ROOT / MIGRATIONS).glob("0*.py"))


def broken_rules(folder: Path) -> list[str]:
    """What the next version's migration does that no migration may do (CONTRIBUTING.md)."""
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader

    from obversa_site import migrating

    spec = importlib.util.spec_from_file_location(STEP, folder / MIGRATIONS / f"{STEP}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    state = MigrationLoader(connection).project_state(("runs", last_migration()))
    return list(migrating.faults(module.Migration(STEP, "runs"), state))


class Roller:
    """Stops each process in good order and starts the next version's in its place."""

    def __init__(self, house: House, ledger: Ledger, every: float) -> None:
        self._house = house
        self._ledger = ledger
        self._every = every
        self._enough = threading.Event()
        self._next = next_version(house.home / "next")
        self.migrated_at = 0.0
        self.broken: list[str] = []
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """What is left is rolled out; then it is over."""
        self._enough.set()
        self._thread.join(600)

    def _go_on(self) -> None:
        self._enough.wait(self._every)
        self.broken = broken_rules(self._next)
        self._house.manage("migrate", "--verbosity", "0", folder=self._next)
        self.migrated_at = time.time()
        for name in ANEW:
            self._again(name)
        for name, member in self._house.processes.items():
            if name != "nginx":
                member.folder = self._next
                self._again(name)

    def _again(self, name: str) -> None:
        member = self._house.processes[name]
        self._enough.wait(self._every)
        self._ledger.struck(name, "TERM")
        member.ask_to_stop()
        member.start()
        try:
            member.until_ready()
        except NotReady as error:
            self._ledger.tell(str(error))
