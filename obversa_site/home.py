"""The folder in which one installation keeps what it owns."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


def ready_home(path: Path) -> Path:
    """Return the folder, made for its owner alone when it was not there."""
    path = path.expanduser().resolve()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (path / "static").mkdir(exist_ok=True)
    return path


def secret_key(home: Path) -> str:
    """Return the installation's secret key, generated once and readable by its owner alone.

    Web and worker may start at the same moment on a new folder. Both write a whole file of their
    own and try to give it the name; the link that comes second fails, and both read the first.
    """
    kept = home / "secret.key"
    if not kept.exists():
        descriptor, draft = tempfile.mkstemp(dir=home, prefix=".secret-")  # has mode 0600
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):
            os.link(draft, kept)
        Path(draft).unlink()
    return kept.read_text(encoding="ascii").strip()
