from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gates.models import Channel, Delivery, Request
from gates.notify.purging import purge
from tests import factories

pytestmark = pytest.mark.django_db


def delivery(key: str, days: int, request: Request | None = None, state: str = "sent") -> None:
    channel, _ = Channel.objects.get_or_create(
        user=factories.ada().user, kind="mail", defaults={"name": "mail", "created_by": "user:1"}
    )
    at = timezone.now() - timedelta(days=days)
    done = None if state == "pending" else at
    Delivery.objects.create(
        channel=channel,
        request=request,
        key=key,
        kind="x",
        state=state,
        next_at=at,
        created_at=at,
        done_at=done,
    )


def test_messages_of_long_ago_go_but_not_those_of_open_questions() -> None:
    delivery("old", 91)
    delivery("failed", 91, state="failed")
    delivery("young", 89)
    delivery("waiting", 200, state="pending")
    delivery("of an open question", 200, factories.pending_gate())

    assert purge(0) == 0
    assert purge() == 2
    assert purge() == 0

    left = set(Delivery.objects.values_list("key", flat=True))
    assert left == {"young", "waiting", "of an open question"}
