"""Lists of questions among a thousand and among a million of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from tests.benchmarks.rows import Row

ROUNDS: Final = 15
PAGES: Final = (
    ("inbox", "/?tab=unclaimed"),
    ("history", "/?tab=history"),
    ("search in the history", "/?tab=history&q=nowhere"),
    ("list of teams", "/teams/"),
    ("queue of a team", "/teams/{team}/"),
    ("times of a team", "/teams/{team}/times/"),
)


def measured(*, full: bool) -> Iterator[Row]:
    """Each page at 1,000 questions with 100 open, and at 1,000,000 with 10,000 open.

    The quick form stops at 100,000 with 1,000 open.
    """
    from django.contrib.auth.models import Group, User
    from django.db import connection
    from django.test import Client

    from tests.benchmarks.many import fill

    user = User.objects.get(username="bench")
    team, _ = Group.objects.get_or_create(name="Release")
    user.groups.add(team)
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user)
    for total in (1_000, 1_000_000 if full else 100_000):
        open_count = max(100, total // 100)
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE runs_run CASCADE")
        began = time.monotonic()
        fill(total, open_count)
        yield Row(what=f"{total:,} questions made", values=[time.monotonic() - began], unit="s")
        for name, path in PAGES:
            what = f"{name}, {open_count:,} open of {total:,}"
            yield _page(what, client, path.format(team=team.pk))


def _page(what: str, client: Any, path: str) -> Row:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client.get(path)
    times = []
    for _ in range(ROUNDS):
        with CaptureQueriesContext(connection) as queries:
            began = time.monotonic()
            assert client.get(path).status_code == 200
            times.append((time.monotonic() - began) * 1000)
    return Row(what=what, values=times, words=f"{len(queries)} statements")
