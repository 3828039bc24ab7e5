"""Agent steps in the service: whose engines they use, what they spend, what a limit does."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from runs import (
    RECORDED_ENGINE_USAGE,
    AgentResult,
    EngineError,
    LoopError,
    agent_job,
    dag,
    fn_job,
    kickback,
    parallel,
    publish,
    registry,
    sequence,
    services,
    sweep,
    with_env,
)
from runs.attempts import worker
from runs.models import Run
from runs.testing import MockEngine
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)

HOUSE = {"house": MockEngine(lambda request: f"house {request.model}"), "second": MockEngine(str)}
NOT_ENGINES = ["house"]


def ask(prompt: Any = "Do it.", **more: Any) -> Any:
    return agent_job(prompt, **{"label": "ask", **more})


def start(job: Any, **options: Any) -> Run:
    registry.load()
    publish(job, title="Agents", name="agents", **options)
    made = registry.published("agents")
    assert made is not None
    registry.enlist(made)
    return services.start_run("agents", {}, actor=flows.STARTER)


def ran(job: Any, **options: Any) -> Run:
    run = start(job, **options)
    flows.work(run)
    return flows.fresh(run)


def test_a_workflow_brings_its_own_engines() -> None:
    engine = MockEngine(lambda: "ready")
    run = ran(ask(engine="offline"), engines={"offline": engine})

    assert run.status == "passed"
    assert run.outcome is not None
    assert run.outcome["data"] == "ready"
    (usage,) = flows.events(run, "engine:usage")
    assert usage.fields["usage"] == {"kind": "reported", "inputTokens": 10, "outputTokens": 5}


def test_the_engines_of_the_deployment_serve_who_brings_none(settings: LazySettings) -> None:
    settings.OBVERSA_ENGINES = "tests.runs.test_agent_steps.HOUSE"
    settings.OBVERSA_ENGINE = "house"
    own = MockEngine(lambda: "own")

    by_default = ran(ask(model="m"))
    by_name = ran(ask(engine="house", model="n"), engine=own)
    overridden = ran(ask(), engine="house", engines={"house": own})

    found = [run.outcome["data"] for run in (by_default, by_name, overridden) if run.outcome]
    assert found == ["house m", "house n", "own"]


@pytest.mark.parametrize("path", ["tests.runs.test_agent_steps.NOT_ENGINES", "nowhere.at.all"])
def test_a_setting_that_names_no_engines_fails_the_step(settings: LazySettings, path: str) -> None:
    settings.OBVERSA_ENGINES = path

    run = ran(ask())

    assert run.status == "failed"


def test_an_engine_nobody_has_fails_the_step_with_its_name() -> None:
    run = ran(ask(engine="elsewhere"))

    assert run.status == "failed"
    assert run.outcome is not None
    assert run.outcome["error"]["code"] == "CONFIG"
    assert "elsewhere" in run.outcome["error"]["message"]


def test_the_answers_of_steps_side_by_side_are_all_there_afterwards() -> None:
    seen: list[Any] = []

    def look(ctx: Any) -> None:
        seen.extend(ctx.state[RECORDED_ENGINE_USAGE])
        ctx.state["looked"] = True

    agents = parallel("p", {name: ask(model=name) for name in ("a", "b", "c")})
    job = dag("g", {"agents": agents, "look": {"job": fn_job("look", look), "needs": "agents"}})
    run = ran(job, engine=MockEngine(lambda: "x"))

    assert run.status == "passed"
    assert sorted(one["model"] for one in seen) == ["a", "b", "c"]
    ends = [event.fields.get("state") for event in flows.events(run, "job:end")]
    assert [end for end in ends if end] == [{"set": {"looked": True}, "removed": []}]


def test_d17_a_limit_is_waited_out_without_a_worker() -> None:
    calls: list[int] = []

    def reply() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise EngineError("rate-limit", "slow down", retry_after_ms=5)
        return "there"

    run = start(ask(), engine=MockEngine(reply))
    flows.work(run)
    assert flows.sleeps(run)
    flows.wake(run)
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert flows.kinds(run).count("limit:wait") == 1


def test_d17_a_limit_without_an_end_pauses_the_run_until_somebody_resumes_it() -> None:
    spent = [True]

    def reply() -> str:
        if spent:
            raise EngineError("quota", "come back next month")
        return "there"

    run = ran(dag("g", {"a": ask()}), engine=MockEngine(reply))
    assert run.status == "paused"

    spent.clear()
    services.resume_run(run.pk, actor=flows.STARTER)
    flows.work(run)

    assert flows.fresh(run).status == "passed"


def test_r51_holds_in_the_service(settings: LazySettings) -> None:
    builds: list[int] = []

    def write(request: Any) -> str:
        builds.append(1)
        (Path(request.cwd) / "draft.md").write_text("the same")
        (Path(request.cwd) / "notes.md").write_text(str(len(builds)))
        return "written"

    nodes = {
        "write": {"job": ask(workspace_mode="write"), "file": "draft.md"},
        "review": {
            "job": fn_job("review", lambda _ctx: kickback("write", "again")),
            "needs": "write",
            "accepts_kickback_to": ["write"],
        },
    }
    run = ran(dag("g", nodes, max_kickbacks=3), engine=MockEngine(write))

    assert (run.status, len(builds)) == ("failed", 2)
    assert flows.kinds(run).count("job:rework") == 1


def test_an_async_engine_may_tell_of_its_tools_and_of_what_failed_in_it() -> None:
    class Works:
        name = "works"

        async def run(self, request: Any, on_event: Any, cancel: Any) -> AgentResult:
            for name in ("Read", "Edit"):
                on_event({"kind": "tool", "name": name, "phase": "use", "target": "a.md"})
            on_event({"kind": "usage", "usage": {"kind": "unknown"}, "failed": True})
            on_event({"kind": "usage", "usage": {"kind": "unknown"}})
            return AgentResult.saying("done")

    run = ran(dag("g", {"a": ask(), "b": ask(timeout_ms=60_000)}), engine=Works())

    assert run.status == "passed"
    tools = [event.fields["name"] for event in flows.events(run, "engine:tool")]
    assert sorted(tools) == ["Edit", "Edit", "Read", "Read"]
    assert len(flows.events(run, "engine:usage")) == 4


def test_no_secret_of_the_environment_is_in_the_record() -> None:
    engine = MockEngine(lambda request: f"it is {request.env['API_TOKEN']}")
    run = ran(with_env(ask(), {"API_TOKEN": "zebra-crossing-77"}), engine=engine)

    assert run.status == "passed"
    assert "zebra" not in repr([event.to_wire() for event in flows.events(run)])


def test_an_agent_asks_a_person_and_goes_on_when_the_answer_is_there() -> None:
    replies = ['{"interaction": {"question": "Which?", "input": [1, 2]}}', "done"]
    engine = MockEngine(lambda: replies[len(engine.requests) - 1])
    form = {"id": "which", "response_schema": {"type": "object"}}
    run = ran(dag("g", {"a": ask(interaction=form)}), engine=engine)
    assert (run.status, len(engine.requests)) == ("waiting", 1)

    flows.answer(run, {"feedback": 2, "prompt": "the second"})
    flows.work(run)

    assert (flows.fresh(run).status, len(engine.requests)) == ("passed", 2)
    assert '"the second"' in engine.requests[1].prompt


SPENDS = {"text": "x", "usage": {"kind": "reported", "inputTokens": 60, "outputTokens": 40}}


def test_r266_a_call_beyond_the_budget_of_a_workflow_is_refused_and_the_run_pauses() -> None:
    engine = MockEngine(lambda: SPENDS)
    run = ran(sequence("s", ask(), ask(), ask()), engine=engine, budget=150)

    assert (run.status, len(engine.requests)) == ("paused", 2)
    kinds = flows.kinds(run)
    assert kinds.count("budget:set-aside") == kinds.count("budget:freed") == 2


def test_r269_workers_side_by_side_never_spend_the_same_tokens() -> None:
    engine = MockEngine(lambda: threading.Event().wait(0.05) or SPENDS)
    jobs = {f"a{number}": ask(max_tokens=100) for number in range(8)}
    run = start(parallel("p", jobs, concurrency=8), engine=engine, budget=250)

    def work(_index: int) -> None:
        for pk in flows.ready(run):
            worker.execute(pk, onward=0)

    flows.at_once(8, work)
    flows.work(run)

    # What a call may use is set aside while it runs: one may go past the limit, never eight.
    assert len(engine.requests) == 3
    assert flows.fresh(run).status == "paused"


def test_what_a_lost_worker_had_set_aside_is_free_again() -> None:
    lost = [True]

    def reply(_request: Any) -> Any:
        if lost:
            lost.clear()
            sweep.lose(begun[0], whatever_the_lease=True)
        return SPENDS

    engine = MockEngine(reply)
    run = start(dag("g", {"a": ask(retry_safe=True)}), engine=engine, budget=150)
    begun = flows.ready(run)
    flows.work(run)

    assert (flows.fresh(run).status, len(engine.requests)) == ("passed", 2)


def test_a_budget_that_cannot_be_is_refused_when_it_is_published() -> None:
    with pytest.raises(LoopError, match="budget"):
        publish(ask(), title="x", name="x", budget=-1)
