"""Database work for the event loop: a few threads of its own, connections closed after use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")
_pool: Final = ThreadPoolExecutor(4, thread_name_prefix="read")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work without holding the loop, and without the pages' own threads."""

    def run() -> T:
        close_old_connections()
        try:
            return work(*args, **kwargs)
        finally:
            close_old_connections()

    loop = asyncio.get_running_loop()
    result: Any = await loop.run_in_executor(_pool, run)
    return result  # type: ignore[no-any-return]  # the pool forgets T
