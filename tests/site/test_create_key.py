from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gates.keys import find_key
from gates.models import ApiKey
from tests import factories

pytestmark = pytest.mark.django_db


def create_key(*args: str, **options: Any) -> list[str]:
    out = StringIO()
    call_command("create_key", *args, stdout=out, **options)
    return out.getvalue().splitlines()


def test_the_key_stands_alone_on_the_last_line() -> None:
    lines = create_key("deploy-bot", "--scope", "read", "--scope", "answer")

    found = find_key(lines[-1])
    assert found is not None
    assert (found.name, found.scopes, found.user) == ("deploy-bot", ["answer", "read"], None)
    assert lines[-1] not in "\n".join(lines[:-1])
    assert lines[-1] not in ApiKey.objects.get().hash


def test_a_key_may_act_for_a_person() -> None:
    ada = factories.user("ada")

    found = find_key(create_key("adas", "--scope", "read", "--user", "ada")[-1])

    assert found is not None
    assert found.user == ada
    assert found.expires_at is not None


@pytest.mark.parametrize(("days", "told"), [("0", "It ends never."), ("30", "It ends on 20")])
def test_how_long_a_key_lives_is_chosen_and_told(days: str, told: str) -> None:
    factories.user("ada")

    lines = create_key("adas", "--scope", "read", "--user", "ada", "--days", days)

    assert lines[1].startswith(told)
    found = find_key(lines[-1])
    assert found is not None
    assert (found.expires_at is None) == (days == "0")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["bot"], "--scope"),
        (["bot", "--scope", "everything"], "invalid choice"),
        (["a b", "--scope", "read"], "name"),
        (["bot", "--scope", "read", "--user", "cyd"], "cyd"),
        (["bot", "--scope", "read", "--days", "-1"], "days"),
        (["bot", "--scope", "read", "--days", "99999"], "days"),
    ],
)
def test_a_key_that_cannot_be_made_says_why(args: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        create_key(*args)

    assert ApiKey.objects.count() == 0


def test_a_name_is_given_once() -> None:
    create_key("bot", "--scope", "read")

    with pytest.raises(CommandError, match="bot"):
        create_key("bot", "--scope", "read")
