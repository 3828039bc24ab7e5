from __future__ import annotations

import pytest

from runs.kernel.replies import INVALID_TEAM_DECISION, outcome_from_agent_text

PASS = '{"status": "pass", "summary": "fine"}'
REVISE = '{"status": "revise", "summary": "no", "findings": ["one", {"message": "two"}]}'


def test_w178_the_last_decision_counts() -> None:
    example = f"For example {REVISE}.\n```json\n{PASS}\n```\nThat {{is}} all."

    assert outcome_from_agent_text(example).passed
    assert outcome_from_agent_text(f"{PASS} then {REVISE}").status == "fail"


def test_w178_braces_in_texts_and_code_disturb_nothing() -> None:
    text = 'f(x) { return "}" } ' + '{"status": "pass", "summary": "a } b { c"}' + " {"

    assert outcome_from_agent_text(text).summary == "a } b { c"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fine",
        '{"status": "ok", "summary": "x"}',
        '{"status": "pass"}',
        '{"status": "pass", "summary": " "}',
    ],
)
def test_w179_without_a_decision_it_is_a_failure_that_says_so(text: str) -> None:
    outcome = outcome_from_agent_text(text)

    assert (outcome.status, outcome.summary) == ("fail", INVALID_TEAM_DECISION)
    assert outcome.data == {"reply": text}


def test_w180_a_revision_goes_to_its_target_with_its_findings() -> None:
    outcome = outcome_from_agent_text(REVISE, "write")

    assert outcome.revision is not None
    assert (outcome.revision.target, outcome.revision.reason) == ("write", "no")
    assert [one.evidence for one in outcome.revision.findings] == ["one", "two"]


def test_w181_findings_are_made_whole() -> None:
    given = (
        '{"status": "revise", "summary": "no", "findings": [{"title": "t", "severity": "awful", '
        '"recommendation": "do x"}, {"severity": "block"}, 5, {"evidence": "e", "severity": '
        '"should-fix", "recommendation": 7}]}'
    )
    outcome = outcome_from_agent_text(given)

    assert outcome.revision is not None
    assert [
        (one.evidence, one.severity, one.recommendation) for one in outcome.revision.findings
    ] == [
        ("t", "block", "do x"),
        ("e", "should-fix", None),
    ]
    assert outcome.data == {"dropped": 2}


def test_w180_a_pass_keeps_its_notes() -> None:
    noted = '{"status": "pass", "summary": "fine", "findings": ["shorter?"]}'
    data = outcome_from_agent_text(noted).data

    assert data == {"findings": [{"evidence": "shorter?", "severity": "nice-to-have"}]}
