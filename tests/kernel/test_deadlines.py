"""A question whose time is over: what follows by itself, and that it never looks like an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.kernel import callbacks, clocks
from runs.kernel.callbacks import CallbackStatus
from runs.kernel.decide import decide
from runs.kernel.events import Event, EventKind
from runs.kernel.state import fold, is_folded
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node

MINUTE = 60_000
TIME_KINDS = ("callback-reminded", "callback-overdue", "callback-escalated", "callback-expired")
WORDS = "expired at 1970-01-01 00:01 UTC, nobody answered"


def asking(target: str | None = None, **routing: Any) -> Puppet:
    """Build, then ask for a minute, then ship; the question is out at 1010 ms."""
    routed = {"expiresInSeconds": 58.99, **routing}
    nodes = (
        node("build"),
        node(
            "ok",
            "build",
            job=ask(target=target, routing=routed),
            accepts_kickback_to=("build",) if target else (),
        ),
        node("ship", "ok"),
    )
    run = Puppet(graph(*nodes, max_kickbacks=2))
    run.ends("g", "build")
    return run


def told(run: Puppet) -> list[str]:
    return [str(event.kind) for event in run.events if event.kind in TIME_KINDS]


def held(run: Puppet) -> callbacks.Held:
    (found,) = run.state.callbacks.requests.values()
    return found


def test_the_clock_starts_when_the_question_is_posted() -> None:
    run = asking()

    (routed,) = run.kinds(EventKind.ROUTED)
    assert routed.ts == 1_010
    assert routed.fields["expiresAt"] == "1970-01-01T00:01:00.000Z"
    assert "expiresInSeconds" not in routed.fields


def test_before_its_time_nothing_happens_and_at_it_the_question_expires() -> None:
    run = asking()
    run.now = MINUTE - 1
    assert decide(run.shape, run.state, run.now) == []

    run.waits()

    assert run.now == MINUTE
    assert told(run) == ["callback-expired"]
    (expired,) = run.kinds(EventKind.EXPIRED)
    assert expired.actor == "system"
    assert expired.fields["expiredAt"] == "1970-01-01T00:01:00.000Z"
    assert expired.fields["onExpiry"] == "reject"
    assert run.kinds(EventKind.SUBMITTED) == []
    assert held(run).status == CallbackStatus.SUPERSEDED
    assert run.outcome.status == "fail"


def test_without_more_said_it_is_a_no_that_says_whose() -> None:
    run = asking()
    run.waits()

    outcome = run.node("g", "ok").outcome
    assert outcome.status == "fail"
    assert outcome.summary == WORDS
    assert outcome.data == {
        "approved": False,
        "note": WORDS,
        "expired": True,
        "how": "timed_out",
    }
    assert run.phases("ship") == ["aborted"]


def test_a_no_by_time_goes_where_a_no_goes_and_the_question_is_asked_anew() -> None:
    run = asking(target="build")
    run.waits()

    assert run.ready() == ["build"]
    (back,) = run.kinds(EventKind.SEND_BACK)
    assert back.fields["review"]["summary"] == f"ok sent this back: {WORDS}"
    run.now = 5 * MINUTE
    run.ends("g", "build")

    first, second = run.kinds(EventKind.ROUTED)
    assert first.fields["requestId"] == second.fields["requestId"]
    assert second.fields["expiresAt"] == clocks.iso(second.ts + 58_990)
    assert run.state.expired == {}
    run.answers({"approved": True})
    assert run.ready() == ["ship"]


def test_the_default_answer_counts_and_is_not_taken_for_a_persons() -> None:
    run = asking(onExpiry="answer", defaultAnswer={"approved": True, "note": "quiet is a yes"})
    run.waits()

    outcome = run.node("g", "ok").outcome
    assert outcome.status == "pass"
    assert outcome.summary == f"{WORDS}: taken as approved by default"
    assert outcome.data == {
        "approved": True,
        "note": f"{WORDS}: quiet is a yes",
        "expired": True,
        "how": "timed_out",
    }
    assert held(run).response is None
    assert run.kinds(EventKind.SUBMITTED) == []
    assert run.ready() == ["ship"]


def test_escalated_it_stays_open_for_others_with_a_new_end_and_then_is_a_no() -> None:
    run = asking(onExpiry="escalate", escalateTo={"groups": ["Chiefs"]}, escalateSeconds=120)
    _, claimed = callbacks.claim(run.state.callbacks, run.pending[0], "ada", "token")
    run._posted(claimed)

    run.waits()

    assert told(run) == ["callback-escalated"]
    (escalated,) = run.kinds(EventKind.ESCALATED)
    assert escalated.fields["audience"] == {"groups": ["Chiefs"]}
    assert escalated.fields["expiresAt"] == clocks.iso(3 * MINUTE)
    assert len(run.kinds(EventKind.RELEASED)) == 1
    assert held(run).status == CallbackStatus.PENDING
    assert run.state.ended is None

    run.waits()

    assert run.now == 3 * MINUTE
    assert told(run) == ["callback-escalated", "callback-expired"]
    assert run.outcome.status == "fail"


def test_escalated_through_several_levels_each_is_asked_in_turn_and_the_last_end_is_a_no() -> None:
    run = asking(
        onExpiry="escalate",
        escalateTo=[{"groups": ["Leads"]}, {"groups": ["Chiefs"]}],
        escalateSeconds=[60, 120],
    )
    for _ in range(3):
        run.waits()

    first, second = run.kinds(EventKind.ESCALATED)
    assert [first.fields[name] for name in ("level", "onExpiry")] == [1, "escalate"]
    assert [second.fields[name] for name in ("level", "onExpiry")] == [2, "reject"]
    assert first.fields["audience"] == {"groups": ["Leads"]}
    assert second.fields["audience"] == {"groups": ["Chiefs"]}
    assert first.fields["expiresAt"] == clocks.iso(2 * MINUTE)
    assert second.fields["expiresAt"] == clocks.iso(4 * MINUTE)
    assert told(run) == [*["callback-escalated"] * 2, "callback-expired"]
    assert run.now == 4 * MINUTE
    assert run.outcome.status == "fail"


def test_whoever_comes_late_finds_every_level_asked_from_then_on() -> None:
    run = asking(onExpiry="escalate", escalateTo=[{"groups": ["A"]}, {"groups": ["B"]}])
    run.now = 10 * MINUTE
    run.settle()

    (escalated,) = run.kinds(EventKind.ESCALATED)
    assert escalated.fields["expiresAt"] == clocks.iso(10 * MINUTE + 58_990)
    assert run.state.ended is None


def test_a_record_of_one_level_is_read_as_it_was() -> None:
    run = asking(onExpiry="escalate", escalateTo={"groups": ["Chiefs"]}, escalateSeconds=60)
    run.waits()
    (event,) = run.kinds(EventKind.ESCALATED)
    old = {key: told for key, told in event.fields.items() if key not in ("level", "onExpiry")}
    events = [replace(one, fields=old) if one is event else one for one in run.events]

    (clock,) = fold(events).clocks.values()
    assert (clock.expires_at, clock.rule["onExpiry"]) == (2 * MINUTE, "reject")


def test_an_answer_after_the_escalation_counts() -> None:
    run = asking(onExpiry="escalate", escalateTo={"groups": ["Chiefs"]})
    run.waits()
    run.answers({"approved": True})

    assert run.state.clocks == {}
    assert run.ready() == ["ship"]


def test_left_open_it_is_noted_once_and_can_still_be_answered() -> None:
    run = asking(onExpiry="stay-open")
    run.waits()
    run.now += 40 * 24 * 60 * MINUTE
    run.settle()

    assert told(run) == ["callback-overdue"]
    assert held(run).status == CallbackStatus.PENDING
    run.answers({"approved": True})
    assert run.ready() == ["ship"]


def test_reminders_come_before_it_is_due_each_once() -> None:
    run = asking(dueAt=clocks.iso(50_000), remindBeforeSeconds=[10, 30, 30, 3_600])
    run.waits()
    assert run.now == 20_000
    run.waits()
    assert run.now == 40_000
    assert told(run) == ["callback-reminded"] * 2
    run.waits()

    assert run.now == MINUTE
    assert told(run) == [*["callback-reminded"] * 2, "callback-expired"]
    assert {event.fields["dueAt"] for event in run.kinds(EventKind.REMINDED)} == {
        "1970-01-01T00:00:50.000Z"
    }


def test_whoever_comes_after_the_end_reminds_of_nothing() -> None:
    run = asking(remindBeforeSeconds=[10, 20])
    run.now = 2 * MINUTE
    run.settle()

    assert told(run) == ["callback-expired"]


def test_a_due_time_alone_ends_nothing() -> None:
    run = Puppet(graph(node("ok", job=ask(routing={"dueInSeconds": 1}))))
    run.now = 40 * 24 * 60 * MINUTE
    run.settle()

    assert told(run) == []
    assert len(run.pending) == 1


def test_an_answer_in_time_stops_the_clock() -> None:
    run = asking()
    run.now = MINUTE - 1
    run.answers({"approved": True})
    run.now = 2 * MINUTE
    run.settle()

    assert told(run) == []
    assert run.state.clocks == {}
    assert run.ready() == ["ship"]


def test_a_question_that_another_replaces_stops_its_clock() -> None:
    run = asking()
    (request_id,) = run.pending
    run._posted(callbacks.supersede(run.state.callbacks, request_id, "gate#1#other"))

    assert run.state.clocks == {}


def test_a_withdrawn_question_does_not_expire_as_well() -> None:
    run = asking()
    (request_id,) = run.pending
    run._posted(callbacks.supersede(run.state.callbacks, request_id, request_id))
    run.append(EventKind.WITHDRAWN, ("g", "ok"), requestId=request_id, reason="no need")
    run.now = 2 * MINUTE
    run.settle()

    assert told(run) == []
    assert "withdrawn: no need" in run.node("g", "ok").outcome.error["message"]


def test_a_cancelled_run_does_not_wake_for_its_questions() -> None:
    run = asking()
    run.cancels()

    assert told(run) == []
    assert run.outcome.status == "aborted"
    run.now = 2 * MINUTE
    assert decide(run.shape, run.state, run.now) == []


def test_a_run_that_is_held_lets_time_pass_all_the_same() -> None:
    run = asking()
    run.append(EventKind.RUN_HELD, (), reason="wait")
    run.settle()
    run.waits()

    assert told(run) == ["callback-expired"]
    assert run.state.ended is None


def test_two_that_end_at_one_time_both_end() -> None:
    routing = {"expiresAt": clocks.iso(MINUTE)}
    run = Puppet(
        graph(
            node("a", job=ask("a", routing=routing)),
            node("b", job=ask("b", routing={**routing, "onExpiry": "stay-open"})),
        )
    )
    run.waits()

    assert sorted(told(run)) == ["callback-expired", "callback-overdue"]
    assert run.node("g", "a").outcome.status == "fail"
    assert len(run.pending) == 1


def test_the_fold_of_the_record_is_the_state_and_a_step_cannot_forge_it() -> None:
    run = asking(onExpiry="escalate", escalateTo={"users": ["oda"]}, remindBeforeSeconds=[5])
    while run.state.ended is None:
        run.waits()

    assert fold(run.events) == run.state
    assert all(is_folded(kind) for kind in TIME_KINDS)


@pytest.mark.parametrize("value", ["", "tomorrow", "2031-01-01", 7, None])
def test_a_time_that_is_none_is_no_time(value: Any) -> None:
    assert clocks.started(None, (), {"expiresAt": value}, 0) is None


def test_put_again_the_clock_is_not_wound_back() -> None:
    run = asking()
    (request_id,) = run.pending
    before = run.state.clocks[request_id]
    again = Event(
        EventKind.ROUTED,
        ("g", "ok"),
        {"requestId": request_id, "purpose": "approval", "expiresAt": clocks.iso(9 * MINUTE)},
    )

    assert fold([again], run.state).clocks[request_id] == before
