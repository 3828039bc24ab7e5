"""A workflow's file as a schedule starts it: `python -m tests.drivers.script DIR [wait]`.

It never loads a framework. `KILL_AT` names the step in which the process kills itself, or the
kind of the event after which it does.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from gates import local_callbacks
from runs import Node, approval, dag, exit_code_for, fn_job, kickback, run

DIR = Path(sys.argv[1]) if __name__ == "__main__" else Path()


def die_at(what: str) -> None:
    """Kill this process as the kernel would, if this is where it is to die."""
    if os.environ.get("KILL_AT") == what:
        os.kill(os.getpid(), signal.SIGKILL)


def ran(folder: Path) -> list[str]:
    """The names of the steps in the order they began their work."""
    path = folder / "ran"
    return path.read_text().split() if path.exists() else []


def step(folder: Path, name: str, does: Any = None) -> Any:
    """A step that notes that it ran."""

    def work(ctx: Any) -> Any:
        with (folder / "ran").open("a") as noted:
            noted.write(f"{name}\n")
        attempt = ctx.graph.attempt if ctx.graph else 1
        die_at(f"{name}#{attempt}")
        return f"{name} done" if does is None else does(ctx)

    return fn_job(name, work)


def release(folder: Path, *, safe: bool = False) -> Any:
    """One, two, a question, three."""
    return dag(
        "release",
        {
            "one": step(folder, "one"),
            "two": Node(job=step(folder, "two"), needs="one", retry_safe=safe),
            "ok": Node(job=approval("ok", "Ship it?"), needs="two"),
            "three": Node(job=step(folder, "three"), needs="ok"),
        },
    )


def reviewed(folder: Path) -> Any:
    """Build, and a check that always sends back; one send-back is allowed."""

    def sends_back(ctx: Any) -> Any:
        return kickback("build", f"no {ctx.graph.attempt}")

    def builds(ctx: Any) -> str:
        review = ctx.last_review.revision.reason if ctx.last_review else "nothing"
        with (folder / "reviews").open("a") as noted:
            noted.write(f"{review}\n")
        return f"build {ctx.graph.attempt}"

    check = Node(
        job=step(folder, "check", sends_back), needs="build", accepts_kickback_to=["build"]
    )
    nodes = {"build": Node(job=step(folder, "build", builds), retry_safe=True), "check": check}
    return dag("reviewed", nodes, max_kickbacks=1)


def main() -> int:
    flow = reviewed(DIR) if "reviewed" in sys.argv else release(DIR, safe="safe" in sys.argv)
    result = run(
        flow,
        record_to=DIR / "run.jsonl",
        resume=True,
        callbacks=local_callbacks(DIR / "store", "release"),
        on_callback="wait" if "wait" in sys.argv else "exit",
        on_event=lambda event: die_at(str(event["kind"])),
        cwd=DIR,
    )
    assert "django" not in sys.modules
    sys.stdout.write(f"{result.outcome.status} - {result.outcome.summary}\n")
    return exit_code_for(result.outcome)


if __name__ == "__main__":
    sys.exit(main())
