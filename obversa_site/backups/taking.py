"""A backup of the database and the files of runs, taken while everything runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.db import connection
from django.utils import timezone

from runs.artifacts import store

FORMAT: Final = "obversa backup 1"
MANIFEST: Final = "manifest.json"
DUMPS: Final = {"postgresql": "database.dump", "sqlite": "database.sqlite3"}


class BackupRefused(ValueError):
    """No backup was taken, and why."""


def back_up(folder: Path, tell: Callable[[str], object] = lambda text: None) -> dict[str, Any]:
    """Write a backup into a folder that is not there yet; returns what its manifest says.

    The files come before the database and again after it. A file is stored before the event that
    names it, so a file that the database knows is found by one of the two, also where retention
    takes some away meanwhile. Raises BackupRefused.
    """
    if folder.exists():
        raise BackupRefused(f"{folder} is there already. Name a folder that is not.")
    folder.mkdir(mode=0o700, parents=True)
    places = _folders(tell)
    for name, place in places.items():
        _copy_new(place, folder / name)
    dump = folder / DUMPS[connection.vendor]
    at = timezone.now().isoformat()
    _DUMPERS[connection.vendor](connection.settings_dict, dump)
    manifest = {
        "format": FORMAT,
        "version": version("obversa"),
        "at": at,
        "database": dump.name,
        "sha256": _digest(dump),
        "files": sum(_copy_new(place, folder / name) for name, place in places.items()),
    }
    # Last: a folder without it is half a backup.
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def _folders(tell: Callable[[str], object]) -> dict[str, Path]:
    """Where the stores keep their files on this machine; one of objects is its owner's to copy."""
    found: dict[str, Path] = {}
    for name in (store.ARTIFACTS, store.ARCHIVE):
        storage = store.of(name)
        if not isinstance(storage, FileSystemStorage):
            tell(f"{name}: an object store, which is not copied. Back the bucket up by its means.")
        elif Path(storage.location) not in found.values():
            found[name] = Path(storage.location)
    return found


def _copy_new(source: Path, target: Path) -> int:
    """Copy what is not there yet; how many files there are now. What goes meanwhile is left out."""
    count = 0
    target.mkdir(mode=0o700, exist_ok=True)
    for path in source.rglob("*") if source.is_dir() else ():
        # Drafts begin with a dot; they are named when they are whole.
        if path.name.startswith(".") or not path.is_file():
            continue
        copied = target / path.relative_to(source)
        if not copied.exists() and not _copied(path, copied):
            continue
        count += 1
    return count


def _copied(path: Path, copied: Path) -> bool:
    copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = copied.with_name(f".{copied.name}")
    try:
        shutil.copy2(path, half)
    except FileNotFoundError:
        half.unlink(missing_ok=True)
        return False
    half.replace(copied)
    return True


def _dump_sqlite(database: Mapping[str, Any], dump: Path) -> None:
    """One reading transaction: writers go on beside it (WAL)."""
    with sqlite3.connect(str(database["NAME"]), timeout=60) as source:
        source.execute("VACUUM INTO ?", [str(dump)])
    source.close()
    dump.chmod(0o600)


def _dump_postgresql(database: Mapping[str, Any], dump: Path) -> None:
    """One snapshot, in the format that pg_restore reads."""
    program = shutil.which("pg_dump")
    if program is None:
        raise BackupRefused("pg_dump is not on this machine: install PostgreSQL's client programs.")
    login = {
        "PGHOST": database["HOST"],
        "PGPORT": database["PORT"],
        "PGUSER": database["USER"],
        "PGPASSWORD": database["PASSWORD"],
        "PGDATABASE": database["NAME"],
    }
    # Not in the command line, where every user of the machine reads it.
    environment = os.environ | {name: str(text) for name, text in login.items() if text}
    command = [program, "--format=custom", "--no-owner", "--no-privileges", f"--file={dump}"]
    done = subprocess.run(  # noqa: S603  no shell, and the words are ours
        command, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BackupRefused(f"pg_dump: {done.stderr.strip()}")
    dump.chmod(0o600)


_DUMPERS: Final[dict[str, Callable[[Mapping[str, Any], Path], None]]] = {
    "sqlite": _dump_sqlite,
    "postgresql": _dump_postgresql,
}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key_is_in_home() -> bool:
    """Whether the secret key is the one that was made in OBVERSA_HOME."""
    kept = Path(settings.OBVERSA_HOME) / "secret.key"
    return kept.exists() and kept.read_text(encoding="ascii").strip() == settings.SECRET_KEY
