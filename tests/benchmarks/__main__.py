"""`python -m tests.benchmarks [--workers N] [--cycles N] [--concurrent N]`."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.benchmarks import cpu
from tests.benchmarks.rounds import LOOP, round_costs
from tests.benchmarks.stage import celery_workers, stage


def main() -> None:
    """Set the stage, measure, print."""
    options = argparse.ArgumentParser()
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--cycles", type=int, default=400)
    options.add_argument("--concurrent", type=int, default=100)
    options.add_argument("--only", choices=["cycles"], help="leave the long ones out")
    given = options.parse_args()
    with stage():
        import django

        django.setup()
        from django.contrib.auth.models import User
        from django.core.management import call_command

        from runs import registry

        call_command("migrate", verbosity=0)
        registry.refresh()
        User.objects.create_user("bench", password=None)
        with celery_workers(given.workers):
            rows = [
                ("answer to next step's start, idle, median", _ms(idle_latencies(40))),
                *cycles(given.cycles, given.concurrent, given.workers),
                *([] if given.only else [*step_costs(), *loop_costs(), *waiting_costs()]),
            ]
        rows += [] if given.only else inbox_costs()
    for name, value in rows:
        sys.stdout.write(f"{name:<60} {value:>14}\n")


def _ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.1f} ms"


def _wait(what: Callable[[], Any], seconds: float = 60) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.002)
    raise TimeoutError(str(what))


def _start(workflow: str) -> Any:
    from runs import services

    return services.start_run(workflow, {}, actor="system", surface="command")


def _question(run: Any) -> Any:
    from gates.models import Request

    return Request.objects.filter(run=run, status="pending").first()


def _person() -> Any:
    from django.contrib.auth.models import User

    return User.objects.get(username="bench")


def _answer(row: Any, user: Any) -> float:
    from gates import services
    from runs.principals import Principal

    who = Principal.for_user(user)
    sent = time.time()
    services.submit(
        row.pk, principal=who, token=None, digest=row.digest, response={"approved": True}
    )
    return sent


def idle_latencies(count: int) -> list[float]:
    """Seconds from sending an answer to the next body's first line, one run at a time."""
    found = []
    user = _person()
    for _ in range(count):
        run = _start("gate-cycle")
        sent = _answer(_wait(partial(_question, run)), user)
        began = _wait(partial(_began, run))
        found.append(began - sent)
    return found[5:]


def _began(run: Any) -> float | None:
    from runs.models import Step

    step = Step.objects.filter(run=run, name="b", status="passed").first()
    return None if step is None else float(step.outcome["data"]["began"])


def cycles(count: int, concurrent: int, workers: int) -> list[tuple[str, str]]:
    """Gate cycles a second, and what one costs of the processors' time."""
    cycles_a_second(concurrent // 4, concurrent)
    before = cpu.spent()
    rate = cycles_a_second(count, concurrent)
    spent = {name: each - before.get(name, 0.0) for name, each in cpu.spent().items()}
    parts = ", ".join(f"{name} {each / count * 1000:.1f}" for name, each in spent.items())
    total = sum(spent.values()) / count * 1000
    return [
        (f"gate cycles a second, {concurrent} at once, {workers} workers", f"{rate:.1f}"),
        ("processor time of a gate cycle", f"{total:.1f} ms ({parts})"),
    ]


def cycles_a_second(count: int, concurrent: int) -> float:
    """Whole cycles a second with this many runs in flight: started, asked, answered, done."""
    from django.db import connection

    from gates.models import Request
    from runs.models import Run

    started = done = 0
    who = _person()
    known = Run.objects.filter(status="passed").count()
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        answered: set[Any] = set()
        while done < count:
            while started < count and started - done < concurrent:
                pool.submit(_closing, _start, "gate-cycle")
                started += 1
            # What looks on has to cost little beside what is measured.
            asked = Request.objects.filter(status="pending").values_list("pk", "digest", named=True)
            for row in asked[:200]:
                if row.pk not in answered:
                    answered.add(row.pk)
                    pool.submit(_closing, _answer, row, who)
            time.sleep(0.05)
            done = Run.objects.filter(status="passed").count() - known
            if time.monotonic() - began > 300:
                raise TimeoutError(f"{done} of {count} cycles")
    connection.close()
    return count / (time.monotonic() - began)


def _closing(work: Callable[..., Any], *given: Any) -> None:
    from django.db import connection

    try:
        work(*given)
    finally:
        connection.close()


def step_costs() -> list[tuple[str, str]]:
    """Milliseconds per step of a chain of fn steps, by its length."""
    from runs.models import Run

    found = []
    base = 0.0
    for count in (20, 200, 2000):
        began = time.monotonic()
        run = _start(f"chain-{count}")
        _wait(Run.objects.filter(pk=run.pk, status="passed").exists, 240)
        each = (time.monotonic() - began) / count * 1000
        base = base or each
        found.append((f"a step of {count}", f"{each:.1f} ms ({each / base:.2f}x)"))
    return found


WAITING = 500


def waiting_costs() -> list[tuple[str, str]]:
    """Milliseconds of a run of 20 steps alone, and while many runs wait for answers."""
    from runs.models import Run

    alone = _chain_seconds()
    for _ in range(WAITING):
        _start("gate-cycle")
    _wait(lambda: Run.objects.filter(status="waiting").count() >= WAITING, 240)
    beside = _chain_seconds()
    words = f"{beside * 1000:.0f} ms ({beside / alone:.2f}x of alone)"
    return [(f"a run of 20 steps beside {WAITING} that wait", words)]


def _chain_seconds() -> float:
    from runs.models import Run

    found = []
    for _ in range(5):
        began = time.monotonic()
        run = _start("chain-20")
        _wait(Run.objects.filter(pk=run.pk, status="passed").exists)
        found.append(time.monotonic() - began)
    return statistics.median(found)


def loop_costs() -> list[tuple[str, str]]:
    """Milliseconds per round of a long loop, by which rounds they are."""
    from runs.models import Run

    run = _start(LOOP)
    _wait(Run.objects.filter(pk=run.pk, status="exhausted").exists, 240)
    return round_costs(run)


def inbox_costs() -> list[tuple[str, str]]:
    """Milliseconds and statements for the inbox page at 100 and at 10,000 open questions."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from tests.benchmarks.inbox import ask_many

    user = User.objects.get(username="bench")
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user)
    found = []
    for count in (100, 10_000):
        ask_many(count)
        client.get("/?tab=unclaimed")
        times = []
        for _ in range(15):
            with CaptureQueriesContext(connection) as queries:
                began = time.monotonic()
                assert client.get("/?tab=unclaimed").status_code == 200
                times.append(time.monotonic() - began)
        found.append((f"inbox page with {count} open", f"{_ms(times)}, {len(queries)} statements"))
    return found


if __name__ == "__main__":
    main()
