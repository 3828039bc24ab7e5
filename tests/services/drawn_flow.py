"""Drawn main jobs for a worker process: shapes in files, and so is what their steps leave."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runs import publish
from runs.kernel.graph import Shape, shape_from_json
from tests.runs.drawn import World


class SharedWorld(World):
    """A world that several worker processes leave their marks in."""

    def __init__(self, seed: int, file: Path) -> None:
        super().__init__(seed)
        self.file = file
        self.effects = _Marks(self, "effects")

    def name_of(self, mark: str) -> str:
        """Which attempt at its place this is, whichever process saw those before."""
        with self.kept() as kept:
            seen = kept["seen"].setdefault(mark.rpartition("/")[0], [])
            if mark not in seen:
                seen.append(mark)
            return f"{mark.rpartition('/')[0]} {seen.index(mark) + 1}"

    @contextmanager
    def kept(self) -> Iterator[dict[str, Any]]:
        """What is kept, to be changed while nobody else looks."""
        with self.file.open("a+") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            opened.seek(0)
            found = json.loads(opened.read() or '{"effects": [], "seen": {}}')
            yield found
            opened.seek(0)
            opened.truncate()
            json.dump(found, opened)


class _Marks(list[str]):
    """A list that stands in the file of a world."""

    def __init__(self, world: SharedWorld, key: str) -> None:
        super().__init__()
        self.world, self.key = world, key

    def append(self, mark: str) -> None:
        with self.world.kept() as kept:
            kept[self.key].append(mark)

    def __contains__(self, mark: object) -> bool:
        return mark in list(self)

    def __iter__(self) -> Iterator[str]:
        with self.world.kept() as kept:
            return iter(list(kept[self.key]))


def folder() -> Path:
    return Path(os.environ["OBVERSA_HOME"]) / "drawn"


def write(name: str, shape: Shape, seed: int) -> None:
    """Leave a drawn job for the worker processes that begin after this."""
    folder().mkdir(exist_ok=True)
    wire = {"shape": shape.to_json(), "seed": seed}
    (folder() / f"{name}.json").write_text(json.dumps(wire))


def world_of(name: str) -> SharedWorld:
    """The world of this job, as its file tells it."""
    wire = json.loads((folder() / f"{name}.json").read_text())
    return SharedWorld(wire["seed"], folder() / f"{name}.marks")


def job_of(name: str) -> Any:
    wire = json.loads((folder() / f"{name}.json").read_text())
    return world_of(name).job(shape_from_json(wire["shape"]))


if folder().is_dir():
    for _file in sorted(folder().glob("*.json")):
        publish(job_of(_file.stem), title="A drawn main job", name=_file.stem)
