"""Where Django looks for a database's wrapper, by this name."""

from __future__ import annotations

import select
from typing import Any

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Leaves out what the server ended while it lay in the pool.

    After a restart of the server every connection of every pool is of that kind. A question to the
    server at each turn would find them too, and costs a way there and back; looking whether the
    socket has something to say costs none.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection that stands; raises OperationalError when there is none to be had."""
        while True:
            made = super().get_new_connection(conn_params)
            if self.pool is None or not _has_ended(made):
                return made
            made.close()
            self.pool.putconn(made)


def _has_ended(connection: Any) -> bool:
    """Whether the server said something that nobody asked for: in the pool that is its goodbye."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
