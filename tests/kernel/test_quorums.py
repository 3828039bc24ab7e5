"""The answers of several people are folded from the record, and dropped when it is asked anew."""

from __future__ import annotations

from typing import Any

from runs.kernel import callbacks
from runs.kernel.approvals import APPROVAL_SCHEMA
from runs.kernel.events import Event, EventKind
from runs.kernel.gate import create_callback_gate
from runs.kernel.quorums import tally_of
from runs.kernel.state import RunState, fold
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node

GATE = create_callback_gate(
    gate_id="go",
    gate_version=1,
    decision_text="Go?",
    response_schema=APPROVAL_SCHEMA,
    input=None,
)
ABOUT = {"requestId": GATE.request_id}


def wires(made: list[Any]) -> list[Event]:
    return [
        Event(wire["kind"], (), {key: value for key, value in wire.items() if key != "kind"})
        for wire in made
    ]


def asked(**routing: Any) -> RunState:
    state = fold(wires(callbacks.post(callbacks.empty(), GATE)))
    return fold([Event(EventKind.ROUTED, (), {**ABOUT, **routing})], state)


def responded(actor: str, **more: Any) -> Event:
    return Event(
        EventKind.RESPONDED, (), {**ABOUT, "response": {"approved": True}, **more}, actor=actor
    )


def test_each_person_counts_once_however_often_it_is_recorded() -> None:
    state = fold([responded("user:1"), responded("user:1")], asked(needed=2))

    assert tally_of(state, GATE.request_id).count == 1


def test_a_question_that_needs_one_answer_has_no_tally() -> None:
    assert asked().tallies == {}
    assert tally_of(asked(), GATE.request_id).needed == 1


def test_the_second_asker_of_one_question_does_not_make_it_easier() -> None:
    state = fold([Event(EventKind.ROUTED, (), dict(ABOUT))], asked(needed=2))

    assert tally_of(state, GATE.request_id).needed == 2


def test_taken_back_and_asked_anew_it_has_no_answers() -> None:
    state = fold([responded("user:1")], asked(needed=2))
    gone = callbacks.supersede(state.callbacks, GATE.request_id, GATE.request_id)
    state = fold(wires(gone), state)
    state = fold(wires(callbacks.post(state.callbacks, GATE)), state)

    assert tally_of(state, GATE.request_id).given == ()
    assert tally_of(state, GATE.request_id).needed == 1


def test_what_was_answered_over_the_heads_of_others_is_remembered() -> None:
    told = {**ABOUT, "reason": "the site is down"}

    state = fold([Event(EventKind.OVERRIDDEN, (), told, actor="user:9")], asked())

    assert state.overridden == {GATE.request_id: told}


def asking(**routing: Any) -> Puppet:
    routed = {"needed": 2, **routing}
    return Puppet(graph(node("ok", job=ask(routing=routed)), node("ship", "ok")))


def says(run: Puppet, person: str) -> None:
    (request_id,) = run.state.callbacks.requests
    told = {"requestId": request_id, "response": {"approved": True}, "person": person}
    run.append(EventKind.RESPONDED, ("g", "ok"), **told)


def test_an_answer_that_too_few_people_stand_behind_leads_nowhere() -> None:
    run = asking()
    says(run, "user:1")

    run.answers({"approved": True})

    outcome = run.node("g", "ok").outcome
    assert outcome.status == "fail"
    assert "needs 2 people" in outcome.error["message"]
    assert run.ready() == []


def test_with_the_people_it_needs_it_leads_on() -> None:
    run = asking()
    says(run, "user:1")
    says(run, "user:2")

    run.answers({"approved": True})

    assert run.ready() == ["ship"]


def test_a_no_needs_nobody_else() -> None:
    run = asking()

    run.answers({"approved": False, "note": "no"})

    assert run.node("g", "ok").outcome.summary == "no"


def test_when_its_time_is_over_it_says_how_many_had_answered() -> None:
    run = asking(expiresInSeconds=60)
    says(run, "user:1")

    run.waits()

    outcome = run.node("g", "ok").outcome
    assert outcome.status == "fail"
    assert outcome.summary.endswith("only 1 of 2 answered")
    assert outcome.data["how"] == "timed_out"
