"""Names as parts of other names: of a branch, of a run."""

from __future__ import annotations

import re
from typing import Final

_OTHER: Final = re.compile(r"[^a-z0-9]+")
LONGEST: Final = 60


def slug(name: str, instead: str = "step") -> str:
    """The name in small letters, digits and single hyphens; `instead` when nothing is left."""
    return _OTHER.sub("-", name.lower())[:LONGEST].strip("-") or instead
