from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.errors import LoopError
from runs.kernel.findings import Finding
from runs.kernel.jsonable import JsonValueError, canonical_json, parse_json
from runs.kernel.outcomes import (
    EXIT_PAUSED,
    STATUSES,
    Outcome,
    Revision,
    exit_code_for,
    failing,
    kickback,
    revision_request,
)

texts = st.text(max_size=8)
findings = st.builds(
    Finding,
    evidence=texts,
    severity=st.sampled_from(["block", "should-fix", "nice-to-have", "approve"]),
    reviewer=st.none() | texts,
    decision=st.none() | st.sampled_from(["accepted", "rejected", "deferred", "escalated"]),
    scope=st.none() | texts,
    recommendation=st.none() | texts,
    raised_by=st.lists(texts, max_size=2).map(tuple),
    votes=st.lists(texts, max_size=2).map(tuple),
    disputed=st.booleans(),
    judge_reason=st.none() | texts,
    id=st.none() | texts,
)
outcomes = st.builds(
    Outcome,
    status=st.sampled_from(STATUSES),
    summary=st.none() | texts,
    data=st.none() | st.dictionaries(texts, texts, max_size=2),
    confidence=st.none() | st.floats(0, 1),
    late=st.booleans(),
    error=st.none() | st.just(LoopError("BODY", "x").to_json()),
    revision=st.none()
    | st.builds(
        Revision,
        target=st.none() | texts,
        reason=texts,
        findings=st.lists(findings, max_size=2).map(tuple),
        rerun=st.none() | texts,
        source=st.none() | texts,
        decision=st.none() | texts,
    ),
    open_findings=st.lists(findings, max_size=2).map(tuple),
    discarded=st.lists(st.fixed_dictionaries({"branch": texts}), max_size=1).map(tuple),
    command=st.none() | st.just({"command": "x", "args": [], "exitCode": None}),
    stall=st.none() | st.just({"window": 3}),
)


@given(outcomes)
def test_an_outcome_survives_the_wire(outcome: Outcome) -> None:
    wire: Any = parse_json(canonical_json(outcome.to_json()))

    assert Outcome.from_json(wire) == outcome
    assert outcome.frozen() == outcome


def test_only_the_status_is_required_and_absent_keys_are_absent() -> None:
    assert Outcome(status="pass").to_json() == {"status": "pass"}
    assert Outcome.from_json({"status": "fail"}) == Outcome(status="fail")


@pytest.mark.parametrize("confidence", [-0.1, 1.1, True, "0.5"])
def test_a_confidence_outside_its_range_is_refused(confidence: Any) -> None:
    with pytest.raises(ValueError, match="confidence"):
        Outcome(status="pass", confidence=confidence)


@pytest.mark.parametrize("status", ["passed", "", None, 1])
def test_a_status_that_is_none_is_refused(status: Any) -> None:
    with pytest.raises(ValueError, match="status"):
        Outcome(status=status)


@pytest.mark.parametrize("wrong", [{"severity": "high"}, {"decision": "maybe"}])
def test_a_finding_refuses_words_it_does_not_know(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="none of"):
        Finding(evidence="x", **wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_finding_without_severity_blocks() -> None:
    assert Finding.from_json({"evidence": "x", "severity": None}).severity == "block"


def test_an_error_given_as_such_is_kept_as_json() -> None:
    error = LoopError("QUOTA", "x")

    assert Outcome(status="fail", error=error).error == error.to_json()  # type: ignore[arg-type]  # accepted, not advertised
    assert failing(error).summary == "x"


def test_a_frozen_outcome_cannot_be_changed_through_what_it_was_made_of() -> None:
    data: dict[str, Any] = {"n": [1]}
    outcome = Outcome(status="pass", data=data).frozen()
    data["n"].append(2)

    assert outcome.data == {"n": [1]}


def test_an_outcome_too_deep_to_be_held_by_graphs_is_refused() -> None:
    data: Any = None
    for _ in range(200):
        data = [data]

    with pytest.raises(JsonValueError, match="levels deep"):
        Outcome(status="pass", data=data).frozen()


def test_a_skipped_pass_is_known_by_its_data() -> None:
    assert Outcome(status="pass", data={"skipped": True}).skipped
    assert not Outcome(status="pass", data={"skipped": 1}).skipped


def test_a_kickback_is_a_fail_aimed_at_a_step() -> None:
    assert kickback("plan", "too vague").to_json() == {
        "status": "fail",
        "summary": "too vague",
        "revision": {
            "reason": "too vague",
            "target": "plan",
            "rerun": "target-and-dependents",
            "findings": [],
        },
    }


def test_a_revision_without_target_names_no_rerun() -> None:
    revision = revision_request(reason="x", rerun="target-and-dependents").revision

    assert revision is not None
    assert revision.rerun is None
    assert revision.target is None


@pytest.mark.parametrize("blank", [None, "", "  \n"])
def test_the_reason_comes_from_the_findings_when_none_is_given(blank: str | None) -> None:
    one = revision_request(reason=blank, findings=[{"evidence": "line 1\n line 2"}])
    two = revision_request(reason=blank, findings=[Finding(evidence="a"), {"evidence": "b"}])
    none = revision_request(reason=blank)

    assert one.summary == "line 1 line 2"
    assert two.summary is not None
    assert two.summary.startswith("2 findings")
    assert none.summary


def test_a_revision_request_takes_other_fields_and_another_status() -> None:
    outcome = revision_request("plan", "why", status="pass", summary="kept", data=[1])

    assert (outcome.status, outcome.summary, outcome.data) == ("pass", "kept", [1])


def test_exit_codes() -> None:
    codes = {status: exit_code_for(Outcome(status=status)) for status in STATUSES}

    assert codes == {"pass": 0, "fail": 1, "exhausted": 2, "aborted": 130, "paused": 75}
    assert EXIT_PAUSED == 75
