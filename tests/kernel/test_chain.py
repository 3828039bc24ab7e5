"""The hashes of a record: an alteration is found at the event where it was made."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.kernel import chain
from runs.kernel.chain import START, event_from_json, event_json, follow, hashes, next_hash
from runs.kernel.events import Event
from runs.kernel.jsonable import canonical_json, snapshot

FEW = settings(max_examples=40, deadline=None)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(TEXTS, VALUES, max_size=4)
EVENTS = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(["run:start", "log", "callback-submitted"]),
        path=st.lists(TEXTS, max_size=3).map(tuple),
        fields=FIELDS,
        ts=st.integers(0, 2**40),
        actor=TEXTS,
        surface=TEXTS,
        key=TEXTS,
    ),
    min_size=1,
    max_size=6,
).map(lambda found: [replace(event, seq=seq) for seq, event in enumerate(found, 1)])


def kept(events: list[Event]) -> list[tuple[Event, str]]:
    return list(zip(events, hashes(events), strict=True))


@FEW
@given(EVENTS)
def test_a_record_that_nobody_touched_fits(events: list[Event]) -> None:
    found = follow(kept(events))

    assert (found.ok, found.count, found.seq) == (True, len(events), None)
    assert found.head == list(hashes(events))[-1]


@FEW
@given(EVENTS, st.data())
def test_any_altered_field_of_any_event_is_named_at_that_event(
    events: list[Event], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    name = data.draw(st.sampled_from(["kind", "ts", "path", "actor", "surface", "key", "fields"]))
    other: Any = data.draw(
        {
            "ts": st.integers(0, 2**40),
            "path": st.lists(TEXTS, max_size=3).map(tuple),
            "fields": FIELDS,
        }.get(name, TEXTS)
    )
    record = kept(events)
    event, own = record[at]
    record[at] = (replace(event, **{name: other}), own)
    is_same = canonical_json(event_json(event)) == canonical_json(event_json(record[at][0]))

    found = follow(record)

    assert (found.ok, found.seq) == ((True, None) if is_same else (False, at + 1))


@FEW
@given(EVENTS, st.data())
def test_a_missing_doubled_or_moved_event_is_named_where_it_is_missed(
    events: list[Event], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    record = kept(events)
    gone = record[:at] + record[at + 1 :]
    doubled = [*record[: at + 1], *record[at:]]

    if gone[at:]:
        assert follow(gone).seq == at + 1
    assert follow(doubled).seq == at + 2
    if len(record) > 1:
        moved = [*record[1:], record[0]]
        assert follow(moved).seq == 1


@FEW
@given(EVENTS, st.data())
def test_renumbering_the_rest_does_not_hide_an_event_that_was_put_in_or_taken_out(
    events: list[Event], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    record = kept(events)
    put_in = [*record[:at], (replace(events[at], actor="mallory!"), "0" * 64), *record[at:]]
    taken = record[:at] + record[at + 1 :]

    assert follow(_renumbered(put_in)).seq == at + 1
    if taken[at:]:
        assert follow(_renumbered(taken)).seq == at + 1


@FEW
@given(EVENTS)
def test_whoever_makes_a_hash_anew_breaks_the_next_one(events: list[Event]) -> None:
    record = kept(events)
    forged = replace(events[0], actor="mallory!")
    record[0] = (forged, next_hash(START, forged))

    found = follow(record)

    # The last event has none after it: that is what the head and its seal are for.
    assert found.seq == (2 if len(events) > 1 else None)
    assert found.ok == (len(events) == 1)


def _renumbered(record: list[tuple[Event, str]]) -> list[tuple[Event, str]]:
    return [(replace(event, seq=seq), own) for seq, (event, own) in enumerate(record, 1)]


def test_events_of_before_there_were_hashes_are_covered_by_the_first_one_after_them() -> None:
    events = [Event("log", fields={"n": n}, seq=n, ts=n) for n in range(1, 6)]
    record = [(event, own if event.seq > 3 else "") for event, own in kept(events)]
    assert follow(record).ok

    record[1] = (replace(record[1][0], actor="mallory"), "")
    found = follow(record)

    assert (found.ok, found.seq) == (False, 1)
    assert "One of the events 1 to 4" in found.text


def test_a_hash_taken_away_after_the_first_one_is_an_alteration() -> None:
    events = [Event("log", fields={"n": n}, seq=n, ts=n) for n in range(1, 4)]
    record = kept(events)
    record[1] = (record[1][0], "")

    assert follow(record).seq == 2


def test_a_record_without_hashes_is_not_called_whole() -> None:
    found = follow([(Event("log", seq=1), "")])

    assert not found.ok
    assert "nothing to compare" in found.text


@FEW
@given(VALUES)
def test_the_fast_way_gives_the_canonical_text(value: Any) -> None:
    assert chain._canonical(snapshot(value)) == canonical_json(value)


def test_a_hash_is_the_same_on_every_machine() -> None:
    event = Event(
        "callback-submitted",
        ("release", "approve"),
        {"requestId": "a#1#b", "response": {"approved": True, "note": "Grün", "n": 1.0}},
        seq=7,
        ts=1_767_225_600_000,
        actor="user:7",
        surface="browser",
    )

    assert next_hash("ab" * 32, event) == PINNED


PINNED = "cc81707a72e05aa5da1926af3563f05647ea5a4a89e4d098f5fdc1d287a2a145"


@FEW
@given(EVENTS)
def test_an_event_comes_back_from_its_json(events: list[Event]) -> None:
    for event in events:
        wire = json.loads(json.dumps(event_json(event)))
        assert next_hash(START, event_from_json(wire)) == next_hash(START, event)


@pytest.mark.parametrize("wrong", [None, {}, {"seq": 1}, []])
def test_what_is_no_event_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="exactly"):
        event_from_json(wrong)
