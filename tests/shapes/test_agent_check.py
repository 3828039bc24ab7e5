from __future__ import annotations

import json
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.drivers.signal import Signal
from runs.kernel.conditions import describe_conditions
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.judging import quorum
from runs.kernel.turns import AgentResult, EngineError, Part
from runs.shapes.agent_check import agent_check
from runs.shapes.dag import Node, dag
from runs.shapes.env import with_env
from runs.shapes.steps import fn_job, gate_job
from tests.engines.mocks import LaterEngine, SayingEngine, said


def judged(engine: Any, *more: Any, **options: Any) -> RunResult:
    check = agent_check("Is it good?", engine=engine, **options)
    return run(gate_job("judge", check), **(more[0] if more else {}))


def verdict(**fields: Any) -> str:
    return json.dumps({"verdict": "yes", "confidence": 0.9, "reason": "fine", **fields})


def result_of(result: RunResult) -> Any:
    (event,) = (event for event in result.events if event.kind == "condition:result")
    return event.fields["result"]


@pytest.mark.parametrize(
    ("reply", "met", "confidence"),
    [
        (verdict(), True, 0.9),
        (verdict(confidence=0.8), True, 0.8),
        (verdict(confidence=0.79), False, 0.79),
        (verdict(verdict="no"), False, 0.9),
        (verdict(verdict="YES"), True, 0.9),
        (verdict(confidence=None), False, 0.0),
        (verdict(confidence="0.9"), False, 0.0),
        (verdict(confidence=9), False, 0.0),
        (f"for example {{}} but {verdict()}", True, 0.9),
        (f'{{"a": 1}} {verdict(verdict="no")} {verdict()}', False, 0.9),
        ("yes, surely", False, 0.0),
        ('{"verdict": "yes"', False, 0.0),
        ("", False, 0.0),
    ],
)
def test_r96_the_plain_form(reply: str, met: bool, confidence: float) -> None:
    found = judged(SayingEngine(reply))

    assert found.outcome.passed is met
    assert result_of(found)["confidence"] == confidence


def test_r95_a_malformed_reply_never_crashes_the_run() -> None:
    found = judged(SayingEngine("no idea"))

    assert found.outcome.error is None
    assert result_of(found)["reason"] == "no readable verdict: no idea"


@pytest.mark.parametrize(
    ("scores", "met", "mean"),
    [
        ({"clear": 0.9, "true": 0.9}, True, 0.9),
        ({"clear": 1.0, "true": 0.25}, False, 0.5),
        ({"clear": 1.0, "true": 0}, False, 0.0),
        ({"clear": 1.0}, False, 0.0),
        ({"clear": 1.0, "true": "1"}, False, 0.0),
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_r97_dimensions(scores: dict[str, Any], met: bool, mean: float, wrapped: bool) -> None:
    reply = json.dumps({"scores": scores} if wrapped else scores)
    found = judged(SayingEngine(reply), dimensions=["clear", "true"])

    assert found.outcome.passed is met
    assert result_of(found)["confidence"] == pytest.approx(mean)


def test_r97_a_reply_without_scores_is_not_met() -> None:
    assert not judged(SayingEngine("good"), dimensions=["clear"]).outcome.passed


@pytest.mark.parametrize(
    ("reply", "met"),
    [
        ("It holds.\n<confidence>85%</confidence>", True),
        ("It holds.\n<confidence>0.85</confidence>", True),
        ("<confidence>99%</confidence> no, <confidence>10%</confidence>", False),
        ("It holds.", False),
        ("It holds. <confidence>sure</confidence>", False),
    ],
)
def test_r98_the_tag_closes_prose(reply: str, met: bool) -> None:
    found = judged(SayingEngine(reply), confidence_tag=True, dimensions=["ignored"])

    assert found.outcome.passed is met


def test_r98_the_prose_is_the_reason_and_in_full_the_output() -> None:
    prose = "word " * 6000
    reply = f"{prose}\n<confidence>90%</confidence>"
    told = result_of(judged(SayingEngine(reply), confidence_tag=True, max_reason_chars=9))

    assert told["reason"] == "word word…"
    assert len(told["output"]) == 20_000


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (EngineError("transient", "away"), "ENGINE"),
        (EngineError("rate-limit", "slow"), "RATE_LIMIT"),
        (OSError("gone"), "ENGINE"),
        (LoopError("BUDGET", "spent"), "BUDGET"),
    ],
)
def test_r99_an_engine_that_fails_raises(raised: Exception, code: str) -> None:
    outcome = judged(SayingEngine(raised), {"on_limit": "fail"}).outcome

    assert outcome.status == "fail"
    assert outcome.error is not None
    assert outcome.error["code"] == code


@pytest.mark.parametrize("made", [None, 3, AgentResult(parts=(Part(text="x"),))])
def test_r99_so_does_one_that_returns_no_result(made: Any) -> None:
    outcome = judged(SayingEngine(lambda _request: made)).outcome

    assert outcome.error is not None
    assert outcome.error["code"] == "ENGINE"


def test_r99_what_the_engine_is_asked_for() -> None:
    engine = SayingEngine(verdict())
    judged(engine)
    judged(engine, confidence_tag=True)
    judged(engine, max_tokens=7, cwd="/somewhere", model="m", timeout_ms=5)
    plain, tagged, given = engine.asked

    assert (plain.max_tokens, tagged.max_tokens, given.max_tokens) == (512, 2048, 7)
    assert plain.cwd is None
    assert (plain.workspace_mode, plain.tools) == ("none", ())
    assert (given.cwd, given.model, given.timeout_ms) == ("/somewhere", "m", 5)
    assert plain.prompt.startswith("Is it good?\n\n")


def test_r127_a_nodes_time_limit_reaches_its_judge() -> None:
    engine = SayingEngine(verdict())
    gate = gate_job("judge", agent_check("Good?", engine=engine))
    run(dag("g", {"a": Node(job=gate, timeout_ms=70, timeout_grace_ms=3)}))

    assert (engine.asked[0].timeout_ms, engine.asked[0].timeout_grace_ms) == (70, 3)


def test_r74_the_variables_of_with_env_reach_the_engine() -> None:
    engine = SayingEngine(verdict())
    run(with_env(gate_job("judge", agent_check("Good?", engine=engine)), {"LANE": "blue"}))

    assert engine.asked[0].env == {"LANE": "blue"}


def test_question_and_context_may_be_functions_of_ctx_and_last() -> None:
    engine = SayingEngine(verdict())

    async def context(_ctx: Any, last: Any) -> str:
        return f"last was {last}"

    check = agent_check(
        lambda ctx, _last: f"at {ctx.path}?",
        context=context,
        engine=engine,
        agent={"system": "You judge.", "model": "j"},
    )
    assert run(gate_job("judge", check)).outcome.passed
    (asked,) = engine.asked
    assert "at ()?" in asked.prompt
    assert "last was None" in asked.prompt
    assert (asked.system, asked.model) == ("You judge.", "j")


def test_r11_the_engine_may_be_named_or_the_runs_own() -> None:
    engine = LaterEngine(verdict())
    options = {"engine": "one", "engines": {"one": engine}}

    assert judged(None, options).outcome.passed
    assert judged("one", {"engines": {"one": engine}}).outcome.passed
    lost = judged(None).outcome
    assert lost.error is not None
    assert lost.error["code"] == "CONFIG"


def test_r212_each_call_records_its_usage_once() -> None:
    def usages(engine: SayingEngine) -> list[Any]:
        told = [event for event in judged(engine).events if event.kind == "engine:usage"]
        # What it cost is added where the event is recorded.
        return [{k: v for k, v in event.fields.items() if k != "cost"} for event in told]

    reported = {"kind": "reported", "inputTokens": 10, "outputTokens": 5}
    assert usages(SayingEngine(verdict())) == [{"model": "say-1", "usage": reported}]
    own = {"kind": "usage", "model": "own", "usage": reported, "billing": "api"}
    assert usages(SayingEngine(verdict(), events=(own,))) == [
        {"model": "own", "usage": reported, "billing": "api"}
    ]
    broken = EngineError("unknown", "x")
    assert usages(SayingEngine(broken)) == [
        {"model": "", "usage": {"kind": "unknown"}, "failed": True}
    ]
    assert usages(SayingEngine(broken, events=(own,)))[0]["usage"] == reported


def test_a_cancelled_run_asks_no_engine() -> None:
    engine, signal = SayingEngine(verdict()), Signal()

    def work(ctx: Any) -> Any:
        signal.set()
        return agent_check("Good?", engine=engine)(ctx, None)

    assert run(fn_job("x", work), signal=signal).outcome.status == "aborted"
    assert engine.asked == []


def test_r227_a_reply_leaves_no_secret_in_the_record() -> None:
    engine = SayingEngine(lambda request: said(verdict(reason=request.env["API_TOKEN"])))
    job = gate_job("judge", agent_check("Good?", engine=engine))
    result = run(with_env(job, {"API_TOKEN": "zebra-crossing-77"}))

    assert "zebra" not in json.dumps([event.to_wire() for event in result.events], default=str)


def test_r91_judges_of_a_quorum_are_asked_side_by_side() -> None:
    import threading

    met = threading.Barrier(3)

    def reply(_request: Any) -> str:
        met.wait(10)
        return verdict()

    votes = [agent_check("Good?", engine=LaterEngine(reply)) for _ in range(3)]
    assert run(gate_job("judges", quorum(3, *votes))).outcome.passed


def test_r92_a_judge_that_is_away_stops_a_count_it_could_decide() -> None:
    yes = agent_check("Good?", engine=SayingEngine(verdict()))
    away = agent_check("Good?", engine=SayingEngine(EngineError("rate-limit", "slow")))
    outcome = run(gate_job("judges", quorum(2, yes, away)), on_limit="fail").outcome

    assert outcome.error is not None
    assert outcome.error["code"] == "RATE_LIMIT"


@pytest.mark.parametrize(
    "options",
    [
        {"question": ""},
        {"question": 3},
        {"threshold": 2},
        {"threshold": "0.5"},
        {"context": 3},
        {"dimensions": "clear"},
        {"dimensions": [""]},
        {"max_tokens": 0},
        {"timeout_ms": True},
        {"max_reason_chars": -1},
    ],
)
def test_what_cannot_be_asked_is_refused_when_declared(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        agent_check(**{"question": "Good?", **options})


def test_r234_its_identity_is_what_is_asked() -> None:
    made = [
        agent_check("Good?"),
        agent_check("Bad?"),
        agent_check("Good?", threshold=0.5),
        agent_check("Good?", engine="one"),
        agent_check("Good?", context=lambda _c, _l: "x"),
    ]
    assert len({item.shape["code"] for item in made}) == len(made)
    assert agent_check("Good?").shape == made[0].shape
    assert describe_conditions(made[0]) == ["agent check: Good?"]
