"""Those that are measured beside each other, each in a file of its own."""

from __future__ import annotations
