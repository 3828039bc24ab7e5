"""What asks a question and answers it. Names load on first use.

Only `create_stored_callback_client` loads Django, and only when it is called for by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gates.stored import create_stored_callback_client
    from runs.drivers.callbacks import (
        create_callback_client,
        direct_router,
        replay_callback_client,
    )
    from runs.kernel.gate import callback_request_digest, create_callback_gate

__all__ = [
    "callback_request_digest",
    "create_callback_client",
    "create_callback_gate",
    "create_stored_callback_client",
    "direct_router",
    "replay_callback_client",
]

_NAMES_IN = {
    "gates.stored": ("create_stored_callback_client",),
    "runs.drivers.callbacks": (
        "create_callback_client",
        "direct_router",
        "replay_callback_client",
    ),
    "runs.kernel.gate": ("callback_request_digest", "create_callback_gate"),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
