"""SIGINT and SIGTERM under a run (runs.md R257, R258)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.jsonl import read_record
from runs.drivers.memory import arun, run
from runs.drivers.signal import Signal
from runs.kernel.outcomes import exit_code_for
from runs.shapes.dag import dag
from runs.shapes.steps import fn_job

ROOT = Path(__file__).resolve().parents[2]
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Whatever a test does, this process's own handlers are there afterwards."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def told(result: Any) -> list[str]:
    return [event.kind for event in result.events if event.kind.startswith("run:")]


# Whoever starts the tests in the background may have told their children to ignore SIGINT.
SCRIPT = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from runs import arun, dag, fn_job, run

def work(ctx):
    print("ready", flush=True)
    ctx.signal.wait(60)

flow = dag("g", {"a": fn_job("a", work)})
if sys.argv[2] == "run":
    run(flow, record_to=sys.argv[1])
else:
    asyncio.run(arun(flow, record_to=sys.argv[1]))
print("swallowed")
"""


@BOTH
@pytest.mark.parametrize("way", ["run", "arun"])
def test_a_signal_is_recorded_before_it_takes_effect(
    tmp_path: Path, number: signal.Signals, way: str
) -> None:
    path = tmp_path / "r"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path), way],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, wrong = process.communicate(timeout=60)

    assert process.returncode == -number
    assert out == ""
    assert ("KeyboardInterrupt" in wrong) is (number == signal.SIGINT)
    events = read_record(path).events
    (abort,) = (event for event in events if event.kind == "run:abort")
    assert abort.fields == {"signal": number.name}


@BOTH
def test_a_host_may_turn_a_signal_into_a_cancel(number: signal.Signals) -> None:
    cancel, heard = Signal(), []

    def host(got: int, _frame: Any) -> None:
        heard.append(got)
        cancel.set("the host was told to go")

    signal.signal(number, host)

    def work(ctx: Any) -> None:
        os.kill(os.getpid(), number)
        assert ctx.signal.wait(30)

    result = run(dag("g", {"a": fn_job("a", work)}), signal=cancel)

    assert heard == [number]
    assert result.outcome.status == "aborted"
    assert exit_code_for(result.outcome) == 130
    assert told(result) == ["run:start", "run:abort", "run:cancel-requested", "run:end"]
    assert signal.getsignal(number) is host


@BOTH
def test_a_host_that_goes_on_hears_the_next_signal_too(number: signal.Signals) -> None:
    heard = threading.Semaphore(0)
    signal.signal(number, lambda _number, _frame: heard.release())

    def work(_ctx: Any) -> None:
        for _ in range(3):
            os.kill(os.getpid(), number)
            assert heard.acquire(timeout=30)

    result = run(fn_job("a", work))

    assert result.outcome.status == "pass"
    assert told(result) == ["run:start", "run:abort", "run:abort", "run:abort", "run:end"]


def test_no_listener_is_left_behind() -> None:
    def raises(_ctx: Any) -> None:
        raise RuntimeError

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for job in (raises, lambda _ctx: None):
        run(fn_job("a", job))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def work(_ctx: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    assert told(run(fn_job("a", work))) == ["run:start", "run:end"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_ctrl_c_leaves_the_run_and_asks_its_steps_to_stop() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    heard: list[str] = []
    asked = threading.Event()

    def work(ctx: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        if ctx.signal.wait(30):
            asked.set()

    with pytest.raises(KeyboardInterrupt):
        run(fn_job("a", work), on_event=lambda event: heard.append(str(event["kind"])))
    assert asked.is_set()
    assert [kind for kind in heard if kind.startswith("run:")] == ["run:start", "run:abort"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_off_the_main_thread_a_run_touches_no_handler() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[Any] = []
    job = fn_job("a", lambda _ctx: seen.append(signal.getsignal(signal.SIGTERM)))
    thread = threading.Thread(target=run, args=(job,))
    thread.start()
    thread.join()

    assert seen == [before]


async def test_cancelling_the_task_cancels_the_run() -> None:
    begun, ended = threading.Event(), []

    def work(ctx: Any) -> None:
        begun.set()
        ended.append(ctx.signal.wait(30))

    task = asyncio.create_task(arun(dag("g", {"a": fn_job("a", work)})))
    await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_options_of_arun_are_checked_like_those_of_run() -> None:
    with pytest.raises(TypeError):
        await arun(lambda _ctx: None, nonsense=1)
    assert (await arun(lambda _ctx: None, run_id="a-1")).run_id == "a-1"


def test_a_cancel_wakes_whoever_listens_once() -> None:
    cancel, heard = Signal(), []
    stop = cancel.listen(lambda: heard.append("stopped"))
    stop()
    cancel.listen(lambda: heard.append("before"))
    cancel.set("first")
    cancel.set("second")
    cancel.listen(lambda: heard.append("after"))

    assert heard == ["before", "after"]
    assert cancel.reason == "first"
