"""Many open questions, quickly."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django.utils import timezone

from gates.models import Request
from runs.models import Run
from runs.people.audiences import audience_for

END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)


def ask_many(total: int) -> None:
    """Bring the number of open questions to `total` by rows alone, without their events."""
    now = timezone.now()
    audience = audience_for(None)
    run, _ = Run.objects.get_or_create(
        kind=Run.Kind.EXTERNAL,
        stream="bench",
        defaults={
            "audience": audience,
            "started_by": "key:bench",
            "created_at": now,
            "changed_at": now,
        },
    )
    have = Request.objects.filter(status="pending").count()
    Request.objects.bulk_create(
        (
            Request(
                run=run,
                request_id=f"q{index}#1#{index:064x}",
                gate_id=f"q{index}",
                gate_version=1,
                digest=f"{index:064x}",
                decision_text=f"Go on with number {index}?",
                response_schema={"type": "object"},
                audience=audience,
                due_order=END_OF_TIME,
                asked_seq=index + 1,
                created_at=now,
                changed_at=now,
            )
            for index in range(have, total)
        ),
        batch_size=1_000,
    )
    # As autovacuum does within a minute: plans that are kept were made for the table of before.
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE gates_request")
