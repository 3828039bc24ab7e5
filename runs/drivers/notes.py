"""What all contexts of one start share: its question, and the values that nothing may record."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from runs.drivers.ports import Callbacks
from runs.drivers.questions import Asked
from runs.engines.scrub import Scrubber, looks_secret, secret_values
from runs.kernel.action_requests import is_about_action
from runs.kernel.errors import LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import canonical_json
from runs.kernel.tool_errors import ToolFailed


class Notes:
    """Kept beside a step while it runs; a step may have threads of its own."""

    def __init__(self) -> None:
        self.asked: CallbackRequest | None = None
        self.questions = Asked()
        self.failed_calls: dict[str, ToolFailed] = {}
        self._calls: Counter[str] = Counter()
        self._injected: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def count_call(self, name: str) -> int:
        """How often a call of this name was made in this start, this one included."""
        self._calls[name] += 1
        return self._calls[name]

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

    def refuse_secrets(self, what: str, value: object) -> None:
        """Raise VALIDATION for JSON that is kept exactly as given and holds a secret (R227)."""
        secrets = self.secrets()
        if not secrets:
            return
        text = canonical_json(value)
        if any(json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in secrets):
            why = f"{what} holds the value of a secret variable."
            raise LoopError("VALIDATION", why, phase="body")


class GuardedCallbacks:
    """The run's questions as a step may use them: no secret is asked, and none answered."""

    def __init__(self, client: Callbacks, notes: Notes) -> None:
        self._client = client
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def claim(self, request_id: str, router_id: str) -> Any:
        """Claim, unless it is the yes to an action: no step gives that to itself (I132)."""
        _refuse_own_yes(request_id)
        return self._client.claim(request_id, router_id)

    def supersede(self, request_id: str, superseded_by: str) -> None:
        """Take a question out of play, unless it is about an action."""
        _refuse_own_yes(request_id)
        self._client.supersede(request_id, superseded_by)

    def post(self, request: CallbackRequest) -> None:
        """Ask, unless the question holds a secret."""
        _refuse_own_yes(str(request_wire(request).get("gateId", "")))
        self._notes.refuse_secrets("the question", request_wire(request))
        self._client.post(request)

    def submit(self, *given: Any, **named: Any) -> Any:
        """Answer, unless the answer holds a secret."""
        _refuse_own_yes(str(named.get("request_id", given[0] if given else "")))
        response = named.get("response", given[4] if len(given) > 4 else None)
        self._notes.refuse_secrets("the answer", response)
        return self._client.submit(*given, **named)


def _refuse_own_yes(gate: str) -> None:
    if is_about_action(gate):
        text = "what a step may do is asked and answered outside of it."
        raise LoopError("VALIDATION", text, phase="body")


def request_wire(request: CallbackRequest | Mapping[str, Any]) -> Mapping[str, Any]:
    """The wire form of a request, which may be given in that form."""
    return request if isinstance(request, Mapping) else request.to_wire()
