"""The time of a question inside `run()`: while it waits, and when it comes back to it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runs.drivers.callbacks import create_callback_client, direct_router
from runs.drivers.memory import RunResult, run
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.shapes.steps import fn_job

PAST = datetime(2020, 1, 1, tzinfo=UTC)
WORDS = "expired at 2020-01-01 00:00 UTC, nobody answered"


def flow(**time: Any) -> Any:
    return pipeline(
        "release",
        [
            {"name": "ok", "job": approval("ok", "Ship it?", **time)},
            {"name": "ship", "job": fn_job("ship", lambda _ctx: "shipped")},
        ],
    )


def kinds(result: RunResult) -> list[str]:
    return [event.kind for event in result.events if event.kind.startswith("callback-")]


def test_whoever_waits_for_an_answer_waits_until_its_time_is_over() -> None:
    result = run(flow(expires_in_seconds=0.05), on_callback="wait")

    assert result.outcome.status == "fail"
    assert kinds(result) == [
        "callback-requested",
        "callback-routed",
        "callback-superseded",
        "callback-expired",
    ]


ALWAYS = {"zone": "UTC", "days": [1, 2, 3, 4, 5, 6, 7], "opens": "00:00", "closes": "24:00"}


def test_a_script_counts_working_hours_by_the_calendar_it_gives() -> None:
    result = run(flow(due_in_business_hours=2, calendar=ALWAYS))

    (routed,) = [event for event in result.events if event.kind == "callback-routed"]
    due = datetime.fromisoformat(str(routed.fields["dueAt"]))
    assert abs(due.timestamp() * 1000 - routed.ts - 2 * 3_600_000) < 1_000
    assert routed.fields["dueInBusinessHours"] == 2


def test_a_step_counts_the_time_of_its_questions_in_working_hours_too() -> None:
    asks = fn_job(
        "ask",
        lambda ctx: ctx.ask_questions(
            ["Which?"],
            expires_in_business_hours=3,
            on_expiry="reject",
            calendar=ALWAYS,
        ),
    )
    result = run(asks)

    (routed,) = [event for event in result.events if event.kind == "callback-routed"]
    ends = datetime.fromisoformat(str(routed.fields["expiresAt"]))
    assert abs(ends.timestamp() * 1000 - routed.ts - 3 * 3_600_000) < 1_000


def test_an_end_that_was_over_when_it_was_asked_ends_it_at_once() -> None:
    result = run(
        flow(expires_at=PAST, on_expiry="answer", default_answer={"approved": True}),
    )

    assert result.outcome.status == "pass"
    data: Any = result.outcome.data
    assert data["ok"]["summary"] == f"{WORDS}: taken as approved by default"
    assert data["ok"]["data"]["expired"] is True


def test_a_later_session_finds_that_the_time_is_over(tmp_path: Path) -> None:
    record, client = tmp_path / "run.jsonl", create_callback_client()
    first = run(flow(expires_in_seconds=3_600), record_to=record, callbacks=client)
    assert first.outcome.status == "paused"
    _make_earlier(record)

    second = run(flow(expires_in_seconds=3_600), record_to=record, resume=True, callbacks=client)

    assert second.outcome.status == "fail"
    assert "callback-expired" in kinds(second)
    assert client.list_pending() == []
    (history,) = [one for one in client.history() if one["kind"] == "callback-superseded"]
    assert history["supersededBy"] == history["requestId"]


def _make_earlier(record: Path) -> None:
    """The same record, with an end that is over by now."""
    lines = []
    for line in record.read_text(encoding="utf-8").splitlines():
        head, name, rest = line.partition('"expiresAt":')
        lines.append(
            f'{head}{name}"2020-01-01T00:00:00.000Z"{rest[rest.index(",") :]}' if name else line
        )
    record.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_escalated_the_claim_is_given_back_and_the_old_token_is_dead() -> None:
    client = create_callback_client()
    asked = approval("ok", "Ship it?", answer=None)
    first = run(asked, callbacks=client)
    assert first.outcome.status == "paused"
    (request,) = client.list_pending()
    claim = client.claim(request.request_id, "ada")
    assert claim.ok

    result = run(
        approval(
            "ok",
            "Ship it?",
            expires_at=PAST,
            on_expiry="escalate",
            escalate_to={"users": ["oda"]},
            escalate_seconds=3_600,
        ),
        callbacks=client,
    )

    assert result.outcome.status == "paused"
    assert kinds(result)[-2:] == ["callback-released", "callback-escalated"]
    assert direct_router(client, request, "oda", lambda _request: {"approved": True}).ok
    late = client.submit(
        request.request_id, claim.claim_token or "", "ada", request.digest, {"approved": True}
    )
    assert not late.ok
