"""What the local drivers refuse, and why. `code` is public and stable."""

from __future__ import annotations

from collections.abc import Mapping

from runs.kernel.jsonable import JSONValue, frozen_object


class RunBusy(RuntimeError):
    """Another live session holds this record (runs.md R226, design D18)."""

    code = "busy"


class RecordDamaged(ValueError):
    """The record does not add up, so nothing can be resumed from it."""

    code = "record-damaged"


class StorageError(Exception):
    """A store keeps no such value, or refuses to; `code` is one of graph.md K19."""

    def __init__(self, code: str, message: str, **details: JSONValue) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: Mapping[str, JSONValue] = frozen_object("details", details)
