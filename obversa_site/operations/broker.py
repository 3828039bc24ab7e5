"""How many messages wait at the broker, asked with little time and not more often than needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass, field
from typing import Any, Final

from amqp.exceptions import NotFound
from django.conf import settings
from kombu import Connection

from obversa_site.celery import app
from obversa_site.operations.remembered import Remembered

logger = logging.getLogger(__name__)

SECONDS: Final = 2
# Whoever asks every second must not make the broker open a connection every second.
KNOWN_SECONDS: Final = 5.0
QUEUES: Final = ("control", "steps", "notify")
# One thread, so that a broker that takes calls and answers none holds one at most.
_asking: Final = ThreadPoolExecutor(1, thread_name_prefix="broker")


@dataclass(frozen=True, slots=True)
class Looked:
    """What the broker said. A queue that nobody has declared yet has no depth."""

    answers: bool
    depths: Mapping[str, int] = field(default_factory=dict)


def look() -> Looked | None:
    """How it is with the broker, as of some seconds ago at most; None without a broker."""
    return _known.get() if settings.CELERY_BROKER_URL else None


def forget() -> None:
    """Ask anew the next time."""
    _known.forget()


def _look() -> Looked:
    asked: Future[Looked] = _asking.submit(_ask)
    try:
        # Several ways there and back, each with its own limit.
        return asked.result(SECONDS * 2)
    except TookTooLong:
        asked.cancel()
        return Looked(answers=False)


def _ask() -> Looked:
    try:
        with _connection() as broker:
            broker.ensure_connection(max_retries=1, timeout=SECONDS)
            return Looked(answers=True, depths=dict(_depths(broker)))
    except Exception as error:  # noqa: BLE001  each transport has faults of its own
        # Its text may hold the address, and with it the password.
        logger.warning("the broker does not answer error=%s", type(error).__name__)
        return Looked(answers=False)


def _depths(broker: Connection) -> Any:
    # A list that is empty is none for Redis: asked whether there is one it would say no. Nothing is
    # made there by declaring one.
    must_exist = broker.transport.driver_type != "redis"
    for queue in QUEUES:
        channel: Any = broker.channel()
        try:
            found = channel.queue_declare(queue, passive=must_exist)
        except NotFound:
            continue  # RabbitMQ has closed the channel by now
        yield queue, found.message_count
        channel.close()


def _connection() -> Connection:
    address = str(app.conf.broker_read_url or app.conf.broker_url or settings.CELERY_BROKER_URL)
    limits = (
        {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS}
        if address.startswith("redis")
        else {"read_timeout": SECONDS, "write_timeout": SECONDS}
        if address.startswith(("amqp", "pyamqp"))
        else {}
    )
    return app.connection_for_read(
        connect_timeout=SECONDS,
        transport_options={**(app.conf.broker_transport_options or {}), **limits},
    )


_known: Final = Remembered(_look, KNOWN_SECONDS)
