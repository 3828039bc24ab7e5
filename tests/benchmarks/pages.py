"""The inbox page with few and with many open questions."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.benchmarks.rows import Row


def measured() -> Iterator[Row]:
    """The page with 100 and with 10,000 open questions; `lists` has larger tables."""
    from tests.benchmarks.inbox import ask_many

    for count in (100, 10_000):
        ask_many(count)
        yield _page(f"inbox page with {count:,} open questions")


def _page(what: str) -> Row:
    """Milliseconds and statements of the page."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(User.objects.get(username="bench"))
    client.get("/?tab=unclaimed")
    times = []
    for _ in range(15):
        with CaptureQueriesContext(connection) as queries:
            began = time.monotonic()
            assert client.get("/?tab=unclaimed").status_code == 200
            times.append((time.monotonic() - began) * 1000)
    return Row(what=what, values=times, words=f"{len(queries)} statements")
