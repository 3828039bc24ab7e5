"""Teams of seats in the words of a run's page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import render_record, run
from runs.kernel.events import Event
from runs.pages import rounds
from runs.pages.event_lines import event_views
from runs.turns import folding
from tests import flows
from tests.runs import team_scenarios as teams

USED = {"kind": "reported", "inputTokens": 10, "outputTokens": 5}


@pytest.mark.django_db
def test_a_stage_counts_its_builds_on_when_its_work_is_sent_back() -> None:
    served = flows.ran(teams.reviewed(2, 3))
    assert served.definition_id is not None
    shape = folding.shape_of(served.definition_id)
    found = rounds.rounds_of(folding.state_at(served.pk, served.last_seq), shape)

    assert found["team", "write"].text == "round 3 of 3"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "fields", "words", "text"),
    [
        ("engine:usage", {"model": "m-1", "usage": USED}, "model asked", "m-1 10/5 tok"),
        (
            "engine:usage",
            {
                "model": "m",
                "usage": {"kind": "unknown"},
                "failed": True,
                "role": "writer",
                "stage": "a",
            },
            "model asked",
            "m usage unknown failed, writer a",
        ),
        (
            "engine:tool",
            {"name": "Read", "phase": "use", "target": "a.md"},
            "model's tool",
            "Read use a.md",
        ),
        ("budget:set-aside", {"call": "x", "tokens": 150}, "tokens set aside", "150 tokens"),
        ("job:rework", {"attempt": "1.2", "before": "x"}, "rework begun", ""),
        (
            "engine:usage",
            {"model": ["odd"], "usage": "odd"},
            "model asked",
            "a model usage unknown",
        ),
    ],
)
def test_what_engines_did_is_told_in_words(
    kind: str, fields: dict[str, Any], words: str, text: str
) -> None:
    (view,) = event_views([Event(kind, ("g", "a"), fields, seq=1)])

    assert (view.words, view.text) == (words, text)


def test_a_report_of_a_team_leaves_out_what_only_the_machine_needs(tmp_path: Path) -> None:
    told = render_record(run(teams.reviewed(2, 3), cwd=tmp_path).events)

    assert "2 of 2 reviewers agree" in told
    assert "rework" not in told
