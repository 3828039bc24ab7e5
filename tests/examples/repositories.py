"""Git repositories and a job's context, made small for the tests of the release."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from runs.drivers.context import Context, Workspace
from runs.drivers.ports import Decide
from runs.drivers.signal import Signal
from runs.examples._steps import build_archive, inspect_source, run_tests
from runs.kernel.calls import Call
from runs.kernel.events import Path as EventPath
from runs.kernel.jsonable import JSONValue, sha256_bytes
from runs.kernel.outcomes import Outcome


def git(where: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments],
        cwd=where,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit(where: Path, subject: str, **files: str) -> str:
    for name, content in (files or {"README.md": subject}).items():
        (where / name).write_text(content)
    git(where, "add", "--all")
    git(where, "commit", "--quiet", "--allow-empty", f"--message={subject}")
    return git(where, "rev-parse", "HEAD")


class Port:
    """Keeps what a step records."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.artifacts: dict[str, bytes] = {}
        self.callbacks: Any = None

    def emit(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        self.lines.append(str(fields.get("message")))

    def stream(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None: ...

    def attach(
        self, name: str, content: bytes | Path, media_type: str, path: EventPath
    ) -> dict[str, JSONValue]:
        kept = content.read_bytes() if isinstance(content, Path) else content
        self.artifacts[name] = kept
        return {
            "name": name,
            "digest": sha256_bytes(kept),
            "byteLength": len(kept),
            "mediaType": media_type,
        }

    def engine_call(self, at_most: int | None) -> AbstractContextManager[None]:
        return nullcontext()

    def act(self, decide: Decide, *, permission: str = "", call: Call | None = None) -> None:
        raise AssertionError("no step of the release calls a tool")

    def is_held(self) -> bool:
        return True

    def leave_thread(self) -> None: ...


@dataclass(kw_only=True)
class ReleaseContext(Context):
    """A job's context whose steps are called one after the other by the test."""

    params: dict[str, Any]
    port: Port
    needs: dict[str, Outcome] = field(default_factory=dict)

    @classmethod
    def at(cls, workspace: Path, **params: Any) -> Self:
        return cls(
            run_id="run",
            path=("release", "step"),
            params=params,
            state={},
            workspace=Workspace(dir=workspace),
            port=Port(),
            signal=Signal(),
            idempotency_key="key",
        )

    @property
    def artifacts(self) -> dict[str, bytes]:
        return self.port.artifacts

    @property
    def clone(self) -> Path:
        return self.workspace.dir / "repository.git"

    def do(self, name: str, step: Callable[[Context], Outcome]) -> Outcome:
        self.needs[name] = step(self).frozen()
        return self.needs[name]


def until_approval(ctx: ReleaseContext) -> None:
    for name, step in (("inspect", inspect_source), ("test", run_tests), ("build", build_archive)):
        assert ctx.do(name, step).passed, ctx.needs[name].summary


def data(outcome: Outcome) -> Any:
    return outcome.data
