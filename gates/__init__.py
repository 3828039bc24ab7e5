"""What asks a question and answers it. Names load on first use.

None of them loads Django, but for `create_stored_callback_client` when it is called with the id of
a run of the service.
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
    from runs.drivers.errors import StorageError
    from runs.drivers.storage.client import local_callbacks
    from runs.drivers.storage.local import create_local_run_storage
    from runs.kernel.gate import callback_request_digest, create_callback_gate

__all__ = [
    "StorageError",
    "callback_request_digest",
    "create_callback_client",
    "create_callback_gate",
    "create_local_run_storage",
    "create_stored_callback_client",
    "direct_router",
    "local_callbacks",
    "replay_callback_client",
]

_NAMES_IN = {
    "gates.stored": ("create_stored_callback_client",),
    "runs.drivers.callbacks": (
        "create_callback_client",
        "direct_router",
        "replay_callback_client",
    ),
    "runs.drivers.errors": ("StorageError",),
    "runs.drivers.storage.client": ("local_callbacks",),
    "runs.drivers.storage.local": ("create_local_run_storage",),
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
