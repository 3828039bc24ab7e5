"""The environment of a run (runs.md R198, engines.md E130-E134)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.drivers.monitor.view import MonitorView
from runs.drivers.signal import Signal
from runs.kernel.errors import LoopError
from runs.kernel.outcomes import Outcome
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.steps import command_job, fn_job


class Site:
    """An environment that notes what happens to it."""

    name = "site"
    url = "http://site.test"

    def __init__(self, up: Any = None, down: Any = None) -> None:
        self.env = {"BASE_URL": self.url}
        self.told: list[str] = []
        self._up = up
        self._down = down

    def up(self, workspace: Any, cancel: Any) -> Any:
        self.told.append(f"up {workspace.dir}")
        if self._up is not None:
            self._up(cancel)
        return self

    def down(self, cancel: Any) -> None:
        self.told.append(f"down {cancel.is_set()}")
        if self._down is not None:
            self._down()


class Later(Site):
    """The same with coroutines."""

    async def _came_up(self, workspace: Any, cancel: Any) -> Any:
        return super().up(workspace, cancel)

    async def _went_down(self, cancel: Any) -> None:
        super().down(cancel)

    def up(self, workspace: Any, cancel: Any) -> Any:
        return self._came_up(workspace, cancel)

    def down(self, cancel: Any) -> Any:
        return self._went_down(cancel)


def kinds(result: RunResult) -> list[str]:
    return [event.kind for event in result.events]


@pytest.mark.parametrize("kind", [Site, Later])
def test_it_is_up_before_the_job_and_down_after_it(tmp_path: Path, kind: Any) -> None:
    site = kind()
    seen: list[Any] = []

    def work(ctx: Any) -> None:
        seen.append((ctx.environment.url, list(site.told)))

    result = run(fn_job("a", work), environment=site, cwd=tmp_path)

    assert result.outcome.status == "pass"
    assert seen == [(site.url, [f"up {tmp_path}"])]
    assert site.told == [f"up {tmp_path}", "down False"]


def test_commands_see_its_variables() -> None:
    command = ["sh", "-c", 'test "$BASE_URL" = http://site.test']

    assert run(command_job("c", command), environment=Site()).outcome.status == "pass"
    assert run(command_job("c", command)).outcome.status == "fail"
    assert "BASE_URL" not in os.environ


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (RuntimeError("no room, token=swordfish"), "CONFIG"),
        (LoopError("TIMEOUT", "slow"), "TIMEOUT"),
    ],
)
def test_one_that_does_not_come_up_ends_the_run_before_its_job(
    raised: Exception, code: str
) -> None:
    def fails(_cancel: Any) -> None:
        raise raised

    ran: list[Any] = []
    result = run(dag("g", {"a": fn_job("a", ran.append)}), environment=Site(up=fails))

    assert ran == []
    assert result.outcome.status == "fail"
    assert result.outcome.error is not None
    assert result.outcome.error["code"] == code
    assert kinds(result) == ["run:start", "error", "run:end"]
    assert result.events[1].fields["code"] == code
    assert "swordfish" not in str(result.outcome.to_json())
    assert result.events[-1].fields["outcome"] == result.outcome.to_json()


def test_the_page_shows_the_end_of_a_run_that_could_not_begin() -> None:
    def fails(_cancel: Any) -> None:
        raise RuntimeError("no room")

    result = run(fn_job("a", print), environment=Site(up=fails), monitor=True)
    result.monitor.close()
    view = MonitorView(fn_job("a", print).shape, Nobody(), None)
    for event in result.events:
        view.write(event)

    assert view.state()["status"] == "done"
    assert view.state()["outcome"]["status"] == "fail"


class Nobody:
    def list_pending(self) -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.mark.parametrize(
    ("job", "status"),
    [
        (fn_job("a", lambda _ctx: Outcome(status="fail")), "fail"),
        (approval("ok", "Ship?"), "paused"),
        (dag("g", {"a": Node(job=fn_job("a", lambda _ctx: 1 / 0), optional=True)}), "pass"),
    ],
)
def test_it_is_taken_down_whatever_came_of_the_job(job: Any, status: str) -> None:
    site = Site()

    assert run(job, environment=site).outcome.status == status
    assert site.told[1:] == ["down False"]


def test_a_failure_to_take_it_down_is_told_and_changes_nothing() -> None:
    def fails() -> None:
        raise RuntimeError("still in use")

    result = run(fn_job("a", lambda _ctx: None), environment=Site(down=fails))

    assert result.outcome.status == "pass"
    assert kinds(result)[-2:] == ["error", "run:end"]
    assert result.events[-2].fields["message"] == "still in use"


def test_a_cancel_reaches_what_comes_up_and_it_is_tidied_up_all_the_same() -> None:
    cancel = Signal()

    def waits(given: Any) -> None:
        threading.Timer(0.01, cancel.set).start()
        assert given.wait(30)

    site = Site(up=waits)
    ran: list[Any] = []
    result = run(dag("g", {"a": fn_job("a", ran.append)}), environment=site, signal=cancel)

    assert ran == []
    assert result.outcome.status == "aborted"
    assert site.told[1:] == ["down False"]


def test_one_that_gives_up_on_a_cancel_leaves_the_run_aborted() -> None:
    cancel = Signal()

    def gives_up(given: Any) -> None:
        cancel.set()
        raise RuntimeError("cancelled")

    assert run(
        approval("ok", "?"), environment=Site(up=gives_up), signal=cancel
    ).outcome.status == ("aborted")


def test_a_run_that_breaks_off_takes_it_down() -> None:
    site = Site()

    class Broken(Nobody):
        def history(self, _request_id: Any = None) -> list[Any]:
            if site.told:
                raise KeyboardInterrupt
            return []

    client: Any = Broken()
    with pytest.raises(KeyboardInterrupt):
        run(fn_job("a", lambda ctx: ctx.callbacks), environment=site, callbacks=client)
    assert site.told[1:] == ["down False"]
