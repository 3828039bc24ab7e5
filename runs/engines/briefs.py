"""Reading a brief from its file."""

from __future__ import annotations

import os
from pathlib import Path

from runs.kernel.errors import DeclarationError
from runs.shapes.brief import Brief, read_brief


def brief_from_file(path: str | os.PathLike[str]) -> Brief:
    """The brief in a Markdown file, UTF-8; raises DeclarationError for what is none (W16-W18)."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(f"the brief {path} cannot be read: {error}") from error
    return read_brief(text, str(path))
