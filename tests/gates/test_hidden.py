"""Secrets of other systems do not lie in the database as they are."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings

from gates import hidden
from gates.models import Channel, Router
from gates.notify import channels
from gates.rehiding import hide_all
from runs.turns import seals
from tests import factories
from tests.gates.notify import ways

pytestmark = pytest.mark.django_db

HOOK = "https://hooks.example.com/T1/very-secret-path"
CHAT = "discord://1234567/very-secret-token"
OTHER = override_settings(SECRET_KEY="another key altogether", SECRET_KEY_FALLBACKS=[])


def kept(table: str = "gates_channel") -> list[str]:
    """What whoever has the database reads there."""
    columns = "secret" if table == "gates_router" else "address || ' ' || secret"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table} ORDER BY id")
        return [str(row[0]) for row in cursor.fetchall()]


def put_plainly(row: Channel | Router, **facts: str) -> None:
    """As the version before did."""
    for column, text in facts.items():
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {row._meta.db_table} SET {column} = %s WHERE id = %s",
                [text, row.pk],
            )


@pytest.fixture
def hook() -> Channel:
    return ways.webhook_of("Release", HOOK)


@pytest.fixture
def router() -> Router:
    return Router.objects.create(name="planted", url="https://router.example.com/in")


def test_the_database_holds_neither_secrets_nor_addresses(hook: Channel, router: Router) -> None:
    ways.service_of("ada", CHAT)
    known = [router.secret, hook.secret, "very-secret-path", "very-secret-token"]

    text = " ".join(kept() + kept("gates_router"))

    assert [secret for secret in known if secret in text] == []
    assert text.count(hidden.MARK) == 4
    hook.refresh_from_db()
    assert (hook.address, hook.secret) == (HOOK, ways.SECRET)
    assert Router.objects.get().secret == router.secret


def test_the_same_secret_lies_there_differently_each_time(hook: Channel) -> None:
    before = kept()
    hook.save(update_fields=["address"])

    assert kept() != before


def test_a_new_secret_is_hidden_too_and_a_removed_channel_holds_none(hook: Channel) -> None:
    secret = channels.renew_secret(hook)
    hook.refresh_from_db()

    assert hook.secret == secret
    assert secret not in kept()[0]
    channels.remove(hook)
    assert kept() == [" "]


def test_what_the_version_before_wrote_is_read_and_encrypted(hook: Channel, router: Router) -> None:
    put_plainly(hook, address=HOOK, secret="obvs_of-before-of-before")
    put_plainly(router, secret="obvs_of-a-router-of-before")
    hook.refresh_from_db()
    router.refresh_from_db()
    assert (hook.address, hook.secret) == (HOOK, "obvs_of-before-of-before")
    assert router.secret == "obvs_of-a-router-of-before"

    assert hide_all() == (3, 0)

    assert "of-before" not in " ".join(kept() + kept("gates_router"))
    hook.refresh_from_db()
    router.refresh_from_db()
    assert (hook.address, hook.secret) == (HOOK, "obvs_of-before-of-before")
    assert router.secret == "obvs_of-a-router-of-before"
    assert hide_all() == (0, 0)


def test_a_new_key_reads_with_the_old_one_and_then_without_it(hook: Channel, settings: Any) -> None:
    old = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "a new key of this installation", [old]
    said = io.StringIO()

    hook.refresh_from_db()
    assert hook.secret == ways.SECRET
    call_command("hide_secrets", stdout=said)

    assert said.getvalue().startswith("2 written anew")
    settings.SECRET_KEY_FALLBACKS = []
    hook.refresh_from_db()
    assert (hook.address, hook.secret) == (HOOK, ways.SECRET)


def test_a_seal_of_before_holds_while_its_key_is_known(settings: Any) -> None:
    made = seals.seal_of("a-run", 7, "0" * 64)
    old = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "a new key of this installation", [old]

    assert seals.is_seal(made, "a-run", 7, "0" * 64)
    assert not seals.is_seal(made, "a-run", 8, "0" * 64)
    assert seals.seal_of("a-run", 7, "0" * 64) != made
    settings.SECRET_KEY_FALLBACKS = []
    assert not seals.is_seal(made, "a-run", 7, "0" * 64)


def test_under_a_lost_key_nothing_is_read_nothing_is_overwritten(
    hook: Channel, router: Router
) -> None:
    before = kept() + kept("gates_router")
    said = io.StringIO()

    with OTHER:
        hook.refresh_from_db()
        assert (hook.address, hook.secret) == ("", "")
        call_command("hide_secrets", stdout=said)

    assert "3 cannot be read" in said.getvalue()
    assert kept() + kept("gates_router") == before


def test_the_admin_asks_for_a_new_secret_when_the_old_one_cannot_be_read(
    client: Client, router: Router
) -> None:
    client.force_login(factories.user("root", is_superuser=True, is_staff=True))
    sent = {"name": "planted", "url": router.url, "secret": "", "timeout_seconds": 9}
    before = kept("gates_router")
    put_plainly(router, secret=hidden.MARK + "nobody-reads-this")

    page = client.post(f"/admin/gates/router/{router.pk}/change/", sent)

    assert "cannot be read any more" in page.content.decode()
    put_plainly(router, secret=before[0])
    assert client.post(f"/admin/gates/router/{router.pk}/change/", sent).status_code == 302
    assert Router.objects.get().secret == router.secret


@pytest.mark.parametrize(("length", "fits"), [(15, False), (16, True), (200, True), (201, False)])
def test_the_longest_secret_fits_its_column(length: int, fits: bool) -> None:
    made = Router(name="r", url="https://router.example.com/", secret="\U0001f511" * length)
    if not fits:
        with pytest.raises(ValidationError):
            made.full_clean()
        return
    made.full_clean()
    made.save()

    assert Router.objects.get().secret == made.secret
    assert len(kept("gates_router")[0]) <= hidden.COLUMN
