"""Where a run keeps its record, and what it is called."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from runs.kernel.errors import LoopError
from runs.shapes.job import Job

RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_LONGEST_SLUG: Final = 32


def generated_run_id(job: Job) -> str:
    """The slug of the job's name, a hyphen and 6 hex digits (runs.md R203)."""
    name = str(getattr(job.shape, "name", None) or getattr(job.shape, "label", ""))
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG].strip("-")
    return f"{slug or 'run'}-{secrets.token_hex(3)}"


def auto_record(cwd: Path, run_id: str) -> Path:
    """`<cwd>/.obversa/records/<run id>.jsonl`, its folders made and kept out of git (R218).

    Raises LoopError (CONFIG) for a symbolic link, or something else than a folder, on the way.
    """
    home = cwd / ".obversa"
    records = home / "records"
    for folder in (home, records):
        folder.mkdir(exist_ok=True) if not _is_there(folder) else None
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise LoopError("CONFIG", f"{folder} is no folder; records are not kept through it.")
    path = records / f"{run_id}.jsonl"
    if _is_there(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise LoopError("CONFIG", f"{path} is no plain file; no record is kept there.")
    _ignored(home / ".gitignore")
    return path


def record_path(given: str | os.PathLike[str], cwd: Path) -> Path:
    """The path an author gave, from the run's folder when it is not absolute."""
    path = Path(given)
    return path if path.is_absolute() else cwd / path


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


def _ignored(path: Path) -> None:
    try:
        with path.open("x", encoding="utf-8") as made:
            made.write("*\n")
    except FileExistsError:
        return
