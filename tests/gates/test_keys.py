from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gates.errors import KeyRefused
from gates.keys import create_key, find_key, revoke
from gates.models import ApiKey
from gates.principals import principal_for_key
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_key_is_found_by_its_text_and_kept_as_a_hash() -> None:
    key, text = create_key("deploy-bot", ["answer", "claim", "claim"])

    assert text.startswith(f"obv_{key.prefix}_")
    assert find_key(text) == key
    kept = str(ApiKey.objects.filter(pk=key.pk).values().get())
    assert text.split("_", 2)[2] not in kept
    assert key.scopes == ["answer", "claim"]


def test_a_text_that_is_no_key_finds_nothing() -> None:
    _, text = create_key("bot", ["read"])

    for wrong in ("", "obv_", text[:-1], text + "x", text.upper(), "\ud800", "é", "x" * 10_000):
        assert find_key(wrong) is None
    other, _ = create_key("other", ["read"])
    assert find_key(f"obv_{other.prefix}_{text[17:]}") is None


def test_a_revoked_key_opens_nothing_and_is_revoked_once() -> None:
    key, text = create_key("bot", ["read"])

    assert revoke(key)
    assert not revoke(key)
    assert find_key(text) is None


def test_an_expired_key_opens_nothing() -> None:
    key, text = create_key("bot", ["read"], expires_at=timezone.now() + timedelta(hours=1))
    assert find_key(text) == key
    ApiKey.objects.update(expires_at=timezone.now())

    assert find_key(text) is None


@pytest.mark.parametrize(
    ("is_a_persons", "days", "lives"),
    [(True, None, 90), (True, 7, 7), (True, 0, None), (False, None, None), (False, 30, 30)],
)
def test_a_persons_key_ends_after_90_days_unless_it_says_otherwise(
    *, is_a_persons: bool, days: int | None, lives: int | None
) -> None:
    user = factories.user("ada") if is_a_persons else None
    before = timezone.now()

    key, _ = create_key("bot", ["read"], user, days=days)

    if lives is None:
        assert key.expires_at is None
    else:
        assert key.expires_at is not None
        assert before + timedelta(days=lives) <= key.expires_at
        assert key.expires_at <= timezone.now() + timedelta(days=lives)


def test_the_key_of_somebody_who_left_opens_nothing() -> None:
    owner = factories.user("ada")
    _, text = create_key("mine", ["read"], owner)
    owner.is_active = False
    owner.save(update_fields=["is_active"])

    assert find_key(text) is None


@pytest.mark.parametrize(
    ("name", "scopes", "field"),
    [
        ("", ["read"], "name"),
        ("a/b", ["read"], "name"),
        ("a b", ["read"], "name"),
        ("x" * 101, ["read"], "name"),
        ("bot", [], "scopes"),
        ("bot", ["rule"], "scopes"),
    ],
)
def test_a_key_that_cannot_be_made_names_the_field(name: str, scopes: Any, field: str) -> None:
    with pytest.raises(KeyRefused) as refusal:
        create_key(name, scopes)

    assert refusal.value.field == field
    assert not ApiKey.objects.exists()


def test_two_keys_have_two_names() -> None:
    create_key("bot", ["read"])

    with pytest.raises(KeyRefused, match="named bot already"):
        create_key("bot", ["read"])

    assert ApiKey.objects.count() == 1


def test_using_a_key_is_noted() -> None:
    key, text = create_key("bot", ["read"])

    find_key(text)

    key.refresh_from_db()
    assert key.last_used_at is not None


def test_a_key_is_a_caller_with_its_own_routers() -> None:
    key, _ = create_key("bot", ["answer"])

    assert principal_for_key(key).actor == "key:bot"
    assert principal_for_key(key, "a").actor == "key:bot/a"
    assert principal_for_key(key).tokens == {"everyone", "key:bot"}
    with pytest.raises(ValueError, match="suffix"):
        principal_for_key(key, "a/b")
