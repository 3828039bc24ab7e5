"""What stands in for the world in an author's tests. Loads no Django."""

from __future__ import annotations

from runs.engines.mock import MockEngine, mock_seat, mock_verdict

__all__ = ["MockEngine", "mock_seat", "mock_verdict"]
