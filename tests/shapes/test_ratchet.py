from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import run
from runs.engines.baseline import compare
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import DeclarationError, LoopError
from runs.shapes.isolating import isolated
from runs.shapes.ratchet import ratchet
from runs.shapes.steps import fn_job, gate_job
from tests.repos import make_repo

SHOW = [sys.executable, "-c", "print(open('now').read())"]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    return found


def measured(place: Path, kept: Path, text: Any, **more: Any) -> ConditionResult:
    """What the ratchet says when the command prints the text (a number as the metric)."""
    said = text if isinstance(text, str) else json.dumps({"lines": text})
    (place / "now").write_text(said)
    given = {"metric": "lines", "baseline_dir": kept, **more}
    condition = ratchet(SHOW[0], SHOW[1:], **given)
    held: list[ConditionResult] = []
    outcome = run(fn_job("x", lambda ctx: held.append(condition(ctx, None))), cwd=place).outcome
    assert outcome.passed, outcome.summary
    return held[0]


def test_r94_the_first_run_seeds_the_baseline(place: Path, kept: Path) -> None:
    result = measured(place, kept, 10)

    assert (result.met, result.reason) == (True, "lines is 10, the first")
    assert result.command is not None
    assert result.output is None


def test_r94_it_holds_or_gets_better(place: Path, kept: Path) -> None:
    told = [measured(place, kept, value).met for value in (10, 10, 9, 10, 9, 8.5, 9)]

    assert told == [True, True, True, False, True, True, False]


def test_r94_up_counts_the_other_way(place: Path, kept: Path) -> None:
    told = [measured(place, kept, value, direction="up").met for value in (10, 11, 10, 11)]

    assert told == [True, True, False, True]


@pytest.mark.parametrize("said", ["nothing", '{"lines": NaN}', '{"lines": "3"}', '{"other": 1}'])
def test_r94_no_number_is_not_met_and_changes_nothing(place: Path, kept: Path, said: str) -> None:
    measured(place, kept, 10)
    result = measured(place, kept, said)

    assert not result.met
    assert "no lines" in result.reason
    assert not measured(place, kept, 11).met


def test_r94_a_failing_or_slow_command_is_not_met_and_changes_nothing(
    place: Path, kept: Path
) -> None:
    for script, limit in (("print('{\"n\": 1}'); raise SystemExit(1)", None), ("while 1: 0", 100)):
        condition = ratchet(
            sys.executable, ["-c", script], metric="n", baseline_dir=kept, timeout_ms=limit
        )
        outcome = run(gate_job("gate", condition), cwd=place).outcome
        assert outcome.status == "fail"
        assert outcome.command is not None
    assert not kept.exists()


def test_r94_baselines_are_kept_by_workspace_command_and_metric(
    place: Path, kept: Path, tmp_path: Path
) -> None:
    measured(place, kept, 5)
    other = tmp_path / "other"
    other.mkdir()

    assert measured(other, kept, 9).reason.endswith("the first")
    assert measured(place, kept, '{"lines": 9, "n": 9}', metric="n").reason.endswith("the first")
    assert len(list(kept.glob("*.json"))) == 3


def test_r94_a_worktree_has_the_baseline_of_its_workspace(tmp_path: Path, kept: Path) -> None:
    repo = make_repo(tmp_path / "repo", now='{"lines": 5}')
    gate = gate_job("gate", ratchet(SHOW[0], SHOW[1:], metric="lines", baseline_dir=kept))

    assert run(gate, cwd=repo).outcome.summary == "lines is 5, the first"
    assert run(isolated(gate), cwd=repo).outcome.summary == "lines is 5, 5 so far"


def test_r94_without_a_place_of_its_own_it_is_kept_at_home(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OBVERSA_HOME", str(tmp_path / "home"))
    measured(place, None, 5)  # type: ignore[arg-type]  # the default

    assert len(list((tmp_path / "home" / "ratchets").glob("*.json"))) == 1


def test_r94_a_baseline_never_lies_in_the_workspace(place: Path) -> None:
    outcome = run(
        gate_job("gate", ratchet("true", metric="n", baseline_dir=place / "in")), cwd=place
    ).outcome
    assert not outcome.passed
    (place / "now").write_text('{"n": 1}')
    condition = ratchet(SHOW[0], SHOW[1:], metric="n", baseline_dir=place / "in")
    outcome = run(gate_job("gate", condition), cwd=place).outcome

    assert outcome.error is not None
    assert outcome.error["code"] == "VALIDATION"
    assert not (place / "in").exists()


def test_r94_of_many_at_once_the_best_stays(kept: Path) -> None:
    barrier = threading.Barrier(8)

    def measure(value: float) -> None:
        barrier.wait()
        compare(kept, "k", value, down=True)

    threads = [threading.Thread(target=measure, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert compare(kept, "k", 3, down=True).before == 0


@pytest.mark.parametrize(
    "more",
    [{"metric": ""}, {"metric": None}, {"direction": "sideways"}, {"timeout_ms": 0}],
)
def test_r94_what_cannot_be_measured_is_refused_when_declared(more: Any) -> None:
    with pytest.raises(DeclarationError):
        ratchet("wc", **{"metric": "lines", **more})


def test_r94_a_command_that_needs_a_shell_is_refused_when_declared() -> None:
    with pytest.raises(LoopError):
        ratchet("", metric="lines")
