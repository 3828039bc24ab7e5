"""Measurements, never tests: `python -m tests.benchmarks` prints a table."""

from __future__ import annotations
