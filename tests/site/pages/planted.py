"""Secrets that lie where they belong, so that it is seen when one turns up anywhere else."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from gates import keys, services
from gates.models import ApiKey, Request, Router
from gates.principals import Principal
from gates.receipts import decision_receipts
from obversa_site.accounts import sign_in_link
from obversa_site.logs import logging_config
from tests import factories
from tests.gates.notify import ways

MAIL_PASSWORD: Final = "planted-mail-password"
DATABASE_PASSWORD: Final = "planted-database-password"
BROKER: Final = "amqp://worker:planted-broker-password@127.0.0.1:9/"
REDIS: Final = "redis://:planted-redis-password@127.0.0.1:9/0"
SENSITIVE: Final = "planted-card-number-4929"
WEBHOOK: Final = "https://hooks.example.com/planted-webhook-path"
CHAT: Final = "discord://1234567/planted-chat-token"


@dataclass
class Planted:
    """The texts to look for, by what they are."""

    texts: dict[str, str] = field(default_factory=dict)
    # The question whose input holds a sensitive value, held by ada.
    gate: Request | None = None

    def found_in(self, text: str, *, but: frozenset[str] = frozenset()) -> list[str]:
        """Which secrets this text holds, beside those that may stand there."""
        return [name for name, secret in self.texts.items() if name not in but and secret in text]


def plant(patch: pytest.MonkeyPatch) -> Planted:
    """Put one of every kind of secret where the product keeps it."""
    ada = factories.user("ada", email="ada@example.com", password="")
    ada.set_password("planted ada's password")
    ada.save()
    gate = factories.pending_gate(
        input={"card": SENSITIVE, "amount": 3},
        presentation={"sensitive": ["/card"]},
        label="sensitive",
    )
    claimed = services.claim(gate.pk, principal=Principal.for_user(ada, "browser"))
    made, key = keys.create_key("planted", ApiKey.SCOPES, ada)
    session = Client()
    session.force_login(ada)
    hook = ways.webhook_of("Release xyzzy", WEBHOOK)
    ways.service_of("ada", CHAT)
    router = Router.objects.create(name="planted", url="https://router.example.com/in")
    patch.setattr(settings, "EMAIL_HOST_PASSWORD", MAIL_PASSWORD, raising=False)
    patch.setattr(settings, "CELERY_BROKER_URL", BROKER)
    patch.setitem(connection.settings_dict, "PASSWORD", DATABASE_PASSWORD)
    patch.setattr(
        settings, "CHANNEL_LAYERS_PLANTED", {"hosts": [REDIS]}, raising=False
    )  # what a page that printed the settings would show
    link = sign_in_link(ada)
    return Planted(
        {
            "claim token": claimed.token or "",
            "key": key,
            "secret half of a key": key.split("_", 2)[2],
            "hash of a key": made.hash,
            "session": session.cookies[settings.SESSION_COOKIE_NAME].value,
            "secret key": settings.SECRET_KEY,
            "password hash": ada.password,
            "password": "planted ada's password",
            "sign-in link": link.rpartition(".")[2],
            "webhook's secret": hook.secret,
            "webhook's path": "planted-webhook-path",
            "chat's token": "planted-chat-token",
            "router's secret": router.secret,
            "mail password": MAIL_PASSWORD,
            "database password": DATABASE_PASSWORD,
            "broker password": "planted-broker-password",
            "redis password": "planted-redis-password",
            "sensitive value": SENSITIVE,
            "receipts' key": decision_receipts._key().private_bytes_raw().hex(),
        },
        gate,
    )


@contextmanager
def log_lines() -> Iterator[list[str]]:
    """Everything that is logged meanwhile, down to DEBUG of ours, in both styles of lines."""
    kept: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(self.format(record))

    handlers = []
    for style in ("text", "json"):
        config = logging_config(style)
        keeper = Keeper(logging.DEBUG)
        made: Any = logging.config.DictConfigurator(config)
        keeper.setFormatter(made.configure_formatter(config["formatters"]["line"]))
        handlers.append(keeper)
    levels = {name: logging.getLogger(name).level for name in ("runs", "gates", "obversa_site")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    for handler in handlers:
        logging.getLogger().addHandler(handler)
    try:
        yield kept
    finally:
        for handler in handlers:
            logging.getLogger().removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
