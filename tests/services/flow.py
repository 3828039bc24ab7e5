"""A main job whose steps have an effect outside: a line in a file, which tests count."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from runs import approval, fn_job, kickback, pipeline, publish
from runs.drivers.context import Context


def effects_file() -> Path:
    return Path(os.environ["OBVERSA_HOME"]) / "effects.txt"


def effects() -> list[str]:
    """Every effect so far: the step and its logical attempt."""
    found = effects_file()
    return found.read_text().splitlines() if found.exists() else []


def mark_of(ctx: Context) -> str:
    """The name of an effect; the same at every try of one logical attempt."""
    return ctx.idempotency_key.partition("/")[2]


def write(mark: str) -> None:
    handle = os.open(effects_file(), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{mark}\n".encode())
    os.close(handle)


def once(ctx: Context) -> str:
    """An effect that may be asked for twice."""
    if mark_of(ctx) not in effects():
        write(mark_of(ctx))
    return "done"


def blindly(ctx: Context) -> str:
    """An effect that happens as often as it is asked for."""
    write(mark_of(ctx))
    return "done"


def slowly(ctx: Context) -> str:
    """An effect that comes after a wait, in the middle of which a test may kill."""
    home = effects_file().parent
    (home / "begun").touch()
    while not (home / "go-on").exists():
        time.sleep(0.02)
    return once(ctx)


def ship(effect: Any) -> Any:
    def body(ctx: Context) -> str:
        ctx.log("shipping")
        told: str = effect(ctx)
        ctx.attach("receipt.txt", "shipped", "text/plain")
        return told

    return body


def review(ctx: Context) -> Any:
    assert ctx.graph is not None
    return "good" if ctx.graph.attempt > 1 else kickback(to="build", reason="once more")


def main_job(name: str, effect: Any, *, retry_safe: bool) -> Any:
    return pipeline(
        name,
        [
            {"name": "build", "job": fn_job("build", effect, retry_safe=retry_safe)},
            {
                "name": "review",
                "job": fn_job("review", review, retry_safe=True),
                "accepts_kickback_to": ["build"],
            },
            {"name": "ok", "job": approval("ok", "Ship it?")},
            {"name": "ship", "job": fn_job("ship", ship(effect), retry_safe=retry_safe)},
        ],
        max_kickbacks=1,
    )


def expected(name: str) -> list[str]:
    """The effects of a whole main job."""
    return [f"{name}/build/1.1", f"{name}/build/1.2", f"{name}/ship/1.1"]


EFFECTS = {
    "repeats": (once, True),
    "asks": (blindly, False),
    "slow": (slowly, True),
    "slow-once": (slowly, False),
}

for _name, (_effect, _retry_safe) in EFFECTS.items():
    publish(main_job(_name, _effect, retry_safe=_retry_safe), title=f"A main job that {_name}")
