"""What docs/notifications.md says of webhooks is what is sent, and its check is the right one."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from gates import signing
from gates.models import Delivery
from gates.notify import addresses, kinds
from gates.notify.message import message_for
from gates.notify.quiet import zone_of
from gates.notify.spread import spread
from gates.notify.webhook import payload
from tests import factories
from tests.gates.notify import ways

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "notifications.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


def checker() -> Any:
    place: dict[str, Any] = {}
    exec(compile(block("python"), "docs/notifications.md", "exec"), place)
    return place["is_from_obversa"]


def test_the_receivers_check_takes_our_messages_and_no_others() -> None:
    check, body, now = checker(), b'{"id":"1"}', int(time.time())
    sent = signing.signed_headers(ways.SECRET, body, now)

    assert check(ways.SECRET, body, sent)
    assert not check("another secret of length", body, sent)
    assert not check(ways.SECRET, body + b" ", sent)
    assert not check(ways.SECRET, body, signing.signed_headers(ways.SECRET, body, now - 400))
    assert not check(ways.SECRET, body, {})
    assert not check(ways.SECRET, body, {**sent, "Obversa-Signature": "v1=\u00e9,,"})


def test_the_guides_vector_is_ours() -> None:
    found = re.search(
        r"secret `(.+?)`, the timestamp `(\d+)` and the body `(.+?)` make `(.+?)`", GUIDE
    )
    assert found is not None
    secret, stamp, body, made = found.groups()

    assert signing.signature(secret, body.encode(), int(stamp)) == made


@pytest.mark.django_db
def test_a_message_has_the_fields_of_the_guide_and_no_others() -> None:
    ways.webhook_of("Release", "https://example.com/")
    factories.pending_gate(audience={"groups": ["Release"]})
    spread()
    delivery = Delivery.objects.select_related("request__run", "run").get()

    made = payload(delivery, message_for(delivery, zone_of("UTC")))

    shown = json.loads(block("json"))
    assert list(made) == list(shown)
    assert list(made["request"]) == list(shown["request"])
    assert list(made["run"]) == list(shown["run"])


def test_the_guide_names_every_event_and_every_service() -> None:
    for name in (*kinds.GROUP_OF, kinds.TEST, *addresses.SCHEMES):
        assert f"`{name}`" in GUIDE, name
