"""The folder in which a run's steps work, one per run and machine."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from functools import partial
from pathlib import Path
from uuid import UUID

from django.conf import settings

from runs.drivers.context import Workspace


def workspace_of(run_id: UUID, *, copied_from: str = "") -> Workspace:
    """The run's folder for its steps, made when one of them looks for it.

    A copy is made at once: the next run may want to begin in a copy of this one.
    """
    if copied_from:
        return Workspace(dir=folder_of(run_id, copied_from=copied_from))
    return Workspace(dir=partial(folder_of, run_id))


def folder_of(run_id: UUID, *, copied_from: str = "") -> Path:
    """The absolute path of the run's folder, made when it is not there.

    A run that begins at a step of another begins in a copy of that run's folder, as far as this
    machine has it.
    """
    home = Path(settings.OBVERSA_HOME).resolve() / "workspaces"
    folder = home / str(run_id)
    if not folder.exists() and copied_from and (home / copied_from).is_dir():
        _copy(home / copied_from, folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _copy(source: Path, folder: Path) -> None:
    """Copy beside and rename, so that nobody meets half a folder; the first one in wins."""
    with tempfile.TemporaryDirectory(dir=source.parent, prefix=".copy-") as beside:
        copied = Path(beside) / "copy"
        shutil.copytree(source, copied, symlinks=True, ignore_dangling_symlinks=True)
        with contextlib.suppress(OSError):
            copied.rename(folder)
