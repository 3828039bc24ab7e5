"""Keeps the rows of questions in step with the record."""

from __future__ import annotations

from runs.record import Turn


def project(turn: Turn) -> None:
    """Nothing yet."""
