"""The product's own settings, with keys in the broker that no other worker of the machine reads."""

from __future__ import annotations

import os
from typing import Any

from obversa_site.settings import *  # noqa: F403
from obversa_site.settings import CELERY_BROKER_TRANSPORT_OPTIONS as _OPTIONS

CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {  # type: ignore[no-redef]  # adds a text
    **_OPTIONS,
    "global_keyprefix": os.environ["OBVERSA_BENCH_KEYS"],
}
