"""What all contexts of one start share: its question, and the values that nothing may record."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from runs.engines.scrub import Scrubber, looks_secret, secret_values
from runs.kernel.gate import CallbackRequest


class Notes:
    """Kept beside a step while it runs; a step may have threads of its own."""

    def __init__(self) -> None:
        self.asked: CallbackRequest | None = None
        self._injected: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def inject(self, variables: Mapping[str, str]) -> None:
        """Remember values that were given to something beneath this step (runs.md R227)."""
        with self._lock:
            for name, value in variables.items():
                self._injected.setdefault(name, set()).add(value)

    def scrubber(self) -> Scrubber:
        """Takes out the injected values and those this process's environment names secret."""
        with self._lock:
            injected = {
                f"{name}={number}": value
                for name, values in self._injected.items()
                for number, value in enumerate(sorted(values))
            }
        return Scrubber(secret_values(os.environ, injected))

    def secrets(self) -> list[str]:
        """The injected values whose names say that they are secrets."""
        with self._lock:
            named = [values for name, values in self._injected.items() if looks_secret(name)]
        found = {value for values in named for value in values}
        return secret_values({}, {value: value for value in found})
