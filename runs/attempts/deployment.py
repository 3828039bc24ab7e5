"""The engines of this installation, for workers alone (design section 1, point 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from runs.kernel.errors import LoopError
from runs.publishing import Published


def engines_of(made: Published) -> dict[str, Any]:
    """What a step of this workflow finds in `ctx.engine` and `ctx.engines`.

    The workflow's own come before those of the deployment (`OBVERSA_ENGINES`, `OBVERSA_ENGINE`).
    Raises LoopError CONFIG where the setting names no mapping.
    """
    return {
        "engine": made.engine if made.engine is not None else (settings.OBVERSA_ENGINE or None),
        "engines": {**deployed(), **made.engines},
    }


def deployed() -> Mapping[str, Any]:
    """The mapping that `OBVERSA_ENGINES` names by its dotted path."""
    if not settings.OBVERSA_ENGINES:
        return {}
    try:
        found = import_string(settings.OBVERSA_ENGINES)
    except Exception as error:
        text = f"OBVERSA_ENGINES names {settings.OBVERSA_ENGINES}, which does not import: {error}"
        raise LoopError("CONFIG", text) from error
    if not isinstance(found, Mapping):
        text = f"OBVERSA_ENGINES names {settings.OBVERSA_ENGINES}, which is no mapping of engines."
        raise LoopError("CONFIG", text)
    return found
