"""The folder in which a run's steps work, one per run and machine."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from uuid import UUID

from django.conf import settings


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
