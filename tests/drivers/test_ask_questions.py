"""A function step that asks: it waits, runs again from its start, and finds its answers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

from runs.drivers.callbacks import CallbackClient, create_callback_client, direct_router
from runs.drivers.context import Context
from runs.drivers.jsonl import read_record
from runs.drivers.memory import RunResult, run
from runs.kernel.errors import LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.outcomes import Outcome
from runs.kernel.questions import Question
from runs.shapes.dag import pipeline
from runs.shapes.env import with_env
from runs.shapes.isolating import isolated
from runs.shapes.steps import fn_job, gate_job
from tests.drivers.test_run_questions import when_asked
from tests.repos import make_repo

COLOUR = Question("Which colour?", key="colour", options=["red", "blue"])
NAME = Question("Which name?", key="name", required=False)


def flow(body: Any, **more: Any) -> Any:
    return pipeline("release", [{"name": "build", "job": fn_job("build", body, **more)}])


def reply(client: CallbackClient, response: dict[str, Any]) -> CallbackRequest:
    (request,) = client.list_pending()
    result = direct_router(client, request, "ada", lambda _request: response)
    assert result.ok, result
    return request


def summary(result: RunResult) -> Any:
    data: Any = result.outcome.data
    return data["build"].get("summary")


def error(result: RunResult) -> str:
    data: Any = result.outcome.data
    return str(data["build"]["error"]["message"])


def test_a_step_runs_again_from_its_start_with_the_answers_in_order(tmp_path: Path) -> None:
    starts: list[int] = []

    def body(ctx: Context) -> str:
        starts.append(1)
        first = ctx.ask_questions([COLOUR, NAME])
        second = ctx.ask_questions(["Why?"])
        return f"{first} {second}"

    client, record = create_callback_client(), tmp_path / "run.jsonl"
    told: list[str] = []
    for response in ({"name": "Bo", "colour": "red"}, {"answer": "so"}):
        paused = run(flow(body), callbacks=client, record_to=record, resume=bool(told))
        assert paused.outcome.status == "paused"
        told.append(reply(client, response).decision_text)
    done = run(flow(body), callbacks=client, record_to=record, resume=True)

    assert told == ["Which colour? (and 1 more)", "Why?"]
    assert summary(done) == "['red', 'Bo'] ['so']"
    assert len(starts) == 3
    events = read_record(record).events
    routed = [event.fields for event in events if event.kind == "callback-routed"]
    assert [one["purpose"] for one in routed] == ["question", "question"]
    assert [event.kind for event in events].count("step:ready") == 2


def test_waiting_takes_no_session_away_and_goes_on_once() -> None:
    client, starts = create_callback_client(), []

    def body(ctx: Context) -> str:
        starts.append(1)
        return str(ctx.ask_questions([COLOUR]))

    thread = when_asked(client, lambda: reply(client, {"colour": "blue"}))
    result = run(flow(body), callbacks=client, on_callback="wait")
    thread.join()

    assert summary(result) == "['blue']"
    assert len(starts) == 2
    assert [event.kind for event in result.events].count("step:ready") == 1


def test_an_answered_question_is_not_asked_again() -> None:
    client = create_callback_client()
    job = flow(lambda ctx: str(ctx.ask_questions([COLOUR])))
    run(job, callbacks=client)
    reply(client, {"colour": "red"})
    before = len(client.history())

    assert summary(run(job, callbacks=client)) == "['red']"
    assert summary(run(job, callbacks=client)) == "['red']"
    assert len(client.history()) == before


def test_a_changed_question_is_asked_anew_and_the_others_keep_their_answers() -> None:
    client = create_callback_client()

    def asks(second: str) -> Any:
        return flow(lambda ctx: f"{ctx.ask_questions([COLOUR])} {ctx.ask_questions([second])}")

    run(asks("Why?"), callbacks=client)
    reply(client, {"colour": "red"})
    run(asks("Why?"), callbacks=client)
    reply(client, {"answer": "so"})
    run(asks("Why not?"), callbacks=client)

    assert reply(client, {"answer": "no"}).decision_text == "Why not?"
    assert summary(run(asks("Why not?"), callbacks=client)) == "['red'] ['no']"


def test_the_same_question_twice_gets_two_answers() -> None:
    client = create_callback_client()
    job = flow(lambda ctx: str([ctx.ask_questions(["More?"]) for _ in range(2)]))
    for response in ("a", "b"):
        run(job, callbacks=client)
        reply(client, {"answer": response})

    assert summary(run(job, callbacks=client)) == "[['a'], ['b']]"


def test_what_is_left_out_is_none_or_an_empty_list() -> None:
    client = create_callback_client()
    many = Question("Which?", key="many", options=["a"], multiple=True, required=False)
    job = flow(lambda ctx: str(ctx.ask_questions([NAME, many, ""])))
    run(job, callbacks=client)
    reply(client, {})

    assert summary(run(job, callbacks=client)) == "[None, [], None]"


def test_nothing_a_step_does_after_it_asked_counts() -> None:
    def swallows(ctx: Context) -> str:
        with contextlib.suppress(BaseException):
            ctx.ask_questions([COLOUR])
        with contextlib.suppress(BaseException):
            ctx.ask_questions(["Another?"])
        return "guessed"

    def raises(ctx: Context) -> str:
        try:
            return str(ctx.ask_questions([COLOUR]))
        finally:
            raise ValueError("cleaning up failed")

    for body in (swallows, raises):
        client = create_callback_client()
        assert run(flow(body), callbacks=client).outcome.status == "paused"
        assert [one.decision_text for one in client.list_pending()] == ["Which colour?"]


def test_an_async_step_asks_from_a_task() -> None:
    async def body(ctx: Context) -> str:
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(_asks(ctx))
        return str(asked.result())

    async def _asks(ctx: Context) -> Any:
        return ctx.ask_questions([COLOUR])

    client = create_callback_client()
    assert run(flow(body), callbacks=client).outcome.status == "paused"
    reply(client, {"colour": "red"})
    assert summary(run(flow(body), callbacks=client)) == "['red']"


def test_a_hand_written_job_asks_too() -> None:
    client = create_callback_client()

    def job(ctx: Context) -> Outcome:
        (colour,) = ctx.ask_questions([COLOUR])
        return Outcome(status="pass", summary=str(colour))

    assert run(job, callbacks=client).outcome.status == "paused"
    reply(client, {"colour": "red"})
    assert run(job, callbacks=client).outcome.summary == "red"


def test_a_step_in_a_worktree_asks_and_works_after_it(tmp_path: Path) -> None:
    where = make_repo(tmp_path / "work", a__txt="one\n")

    def body(ctx: Context) -> str:
        (colour,) = ctx.ask_questions([COLOUR])
        (ctx.workspace.dir / "colour.txt").write_text(str(colour))
        return str(colour)

    job = pipeline("release", [{"name": "build", "job": isolated(fn_job("inner", body))}])
    client = create_callback_client()
    assert run(job, callbacks=client, cwd=where).outcome.status == "paused"
    reply(client, {"colour": "red"})

    assert run(job, callbacks=client, cwd=where).outcome.status == "pass"
    assert (where / "colour.txt").read_text() == "red"


def refused(body: Any) -> str:
    client = create_callback_client()
    result = run(flow(body), callbacks=client)
    assert result.outcome.status == "fail"
    assert client.list_pending() == []
    return error(result)


def test_a_step_asks_twenty_questions_at_most() -> None:
    client = create_callback_client()
    many = flow(lambda ctx: str(ctx.ask_questions([f"{n}?" for n in range(20)])))
    assert run(many, callbacks=client).outcome.status == "paused"

    assert "at most 20" in refused(lambda ctx: ctx.ask_questions([f"{n}?" for n in range(21)]))


def test_calls_of_a_step_count_together() -> None:
    client = create_callback_client()

    def body(ctx: Context) -> None:
        ctx.ask_questions([f"{n}?" for n in range(19)])
        ctx.ask_questions(["a?", "b?"])

    run(flow(body), callbacks=client)
    reply(client, {f"answer{n}": "x" for n in range(1, 20)})
    result = run(flow(body), callbacks=client)

    assert (result.outcome.status, client.list_pending()) == ("fail", [])
    assert "at most 20 questions" in error(result)


def test_a_run_asks_a_hundred_questions_at_most() -> None:
    client = create_callback_client()

    def body(ctx: Context) -> str:
        ctx.ask_questions([f"{n}?" for n in range(20)])
        return "done"

    nodes = [{"name": f"s{n}", "job": fn_job(f"s{n}", body)} for n in range(6)]
    job = pipeline("many", nodes)
    for _ in range(5):
        assert run(job, callbacks=client).outcome.status == "paused"
        reply(client, {f"answer{n}": "x" for n in range(1, 21)})
    result = run(job, callbacks=client)

    assert (result.outcome.status, client.list_pending()) == ("fail", [])
    data: Any = result.outcome.data
    assert "at most 100 questions" in data["s5"]["error"]["message"]


def test_what_is_no_question_fails_the_step() -> None:
    assert "question 1 is no question but int" in refused(lambda ctx: ctx.ask_questions([1]))
    assert "there is no question" in refused(lambda ctx: ctx.ask_questions([]))
    assert "on_answer" in refused(lambda ctx: ctx.ask_questions(["a?"], on_answer="never"))
    assert "JSON" in refused(lambda ctx: ctx.ask_questions(["a?"], about=object()))


def test_an_answer_that_only_the_contract_let_through_fails_the_step() -> None:
    """The contract does not look into lists; a host does, and the step never guesses."""
    client = create_callback_client()
    many = Question("Which?", key="many", options=["a", "b"], multiple=True)
    job = flow(lambda ctx: str(ctx.ask_questions([many])))
    run(job, callbacks=client)
    reply(client, {"many": ["c"]})

    assert "'many' cannot be used" in error(run(job, callbacks=client))


def test_only_the_step_itself_asks() -> None:
    def on_a_thread(ctx: Context) -> str:
        caught: list[str] = []

        def ask() -> None:
            try:
                ctx.ask_questions([COLOUR])
            except LoopError as raised:
                caught.append(str(raised))

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return caught[0]

    assert "own thread" in summary(run(flow(on_a_thread)))
    condition = {"name": "build", "job": fn_job("b", lambda _ctx: "b")}
    asks = {**condition, "when": lambda ctx, _last: bool(ctx.ask_questions([COLOUR]))}
    client = create_callback_client()
    result = run(pipeline("release", [asks]), callbacks=client)
    assert client.list_pending() == []
    assert "only a step can ask" in str([event.fields for event in result.events])


def test_a_check_that_is_a_step_may_ask() -> None:
    client = create_callback_client()
    gate = gate_job("g", lambda ctx, _last: ctx.ask_questions([COLOUR]) == ["red"])
    job = pipeline("release", [{"name": "build", "job": gate}])
    assert run(job, callbacks=client).outcome.status == "paused"
    reply(client, {"colour": "red"})
    assert run(job, callbacks=client).outcome.status == "pass"


def test_a_question_that_holds_a_secret_is_not_asked() -> None:
    job = with_env(
        fn_job("build", lambda ctx: ctx.ask_questions([f"Is {ctx.env_overlay['API_TOKEN']} it?"])),
        {"API_TOKEN": "hunter2-hunter2"},
    )
    client = create_callback_client()
    result = run(pipeline("release", [{"name": "build", "job": job}]), callbacks=client)

    assert (result.outcome.status, client.list_pending()) == ("fail", [])
    assert "secret" in error(result)


def test_a_question_nobody_can_answer_any_more_fails_the_step() -> None:
    client = create_callback_client()
    job = flow(lambda ctx: str(ctx.ask_questions([COLOUR])))
    thread = when_asked(
        client, lambda: client.supersede(client.list_pending()[0].request_id, "another")
    )
    result = run(job, callbacks=client, on_callback="wait")
    thread.join()

    assert result.outcome.status == "fail"
    assert "superseded" in error(result)


def test_a_failure_that_may_pass_keeps_its_answers() -> None:
    client, starts = create_callback_client(), []

    def body(ctx: Context) -> str:
        (colour,) = ctx.ask_questions([COLOUR])
        starts.append(colour)
        if len(starts) < 2:
            raise LoopError("ENGINE", "gone for a moment")
        return str(colour)

    job = flow(body, retry={"max_attempts": 2, "base_delay_ms": 1})
    run(job, callbacks=client)
    reply(client, {"colour": "red"})

    assert run(job, callbacks=client).outcome.status == "pass"
    assert starts == ["red", "red"]


def test_a_session_that_waits_goes_on_with_the_default_when_nobody_answers() -> None:
    job = flow(
        lambda ctx: str(
            ctx.ask_questions(
                [COLOUR],
                expires_in_seconds=0.05,
                on_expiry="answer",
                default_answer={"colour": "blue"},
            )
        )
    )
    result = run(job, on_callback="wait")

    assert summary(result) == "['blue']"
    kinds = [event.kind for event in result.events]
    assert "callback-expired" in kinds
    assert "callback-submitted" not in kinds
