"""A new version is rolled out under load: every process in turn, none of the servers."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

from tests.soak.house import House
from tests.soak.ledger import Ledger
from tests.soak.members import ROOT, NotReady

# The body of a step, in this version and in the next; the shape of its workflow stays.
BODY = "tests/faults/work.py"
NOW, NEXT = 'return "done"', 'return "done by the next version"'
VERSION = "obversa_site/__init__.py"


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
    return folder


class Roller:
    """Stops each process in good order and starts the next version's in its place."""

    def __init__(self, house: House, ledger: Ledger, every: float) -> None:
        self._house = house
        self._ledger = ledger
        self._every = every
        self._enough = threading.Event()
        self._next = next_version(house.home / "next")
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """What is left is rolled out; then it is over."""
        self._enough.set()
        self._thread.join(300)

    def _go_on(self) -> None:
        for name, member in self._house.processes.items():
            if name == "nginx":
                continue
            self._enough.wait(self._every)
            self._ledger.struck(name, "TERM")
            member.ask_to_stop()
            member.folder = self._next
            member.start()
            try:
                member.until_ready()
            except NotReady as error:
                self._ledger.tell(str(error))
