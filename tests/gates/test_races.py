"""One winner, whoever clicks: real threads behind a barrier, then real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from gates import services
from gates.errors import AlreadyAnswered, AlreadyClaimed, GateError, NotClaimed
from gates.models import Request, Response
from gates.principals import Principal
from runs.models import Run
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]
THREADS = 32
ROUNDS = int(os.environ.get("OBVERSA_TEST_RACE_ROUNDS", "50"))
PROCESSES = 8
Act = Callable[[int], Any]


@contextmanager
def crowd(size: int) -> Iterator[Callable[[Act], list[Any]]]:
    """Threads that do one thing at one moment; gives back what each got or was told."""
    barrier = Barrier(size)

    def one(act: Act, number: int) -> Any:
        barrier.wait(timeout=60)
        try:
            return act(number)
        except GateError as refusal:
            return refusal

    with ThreadPoolExecutor(size) as pool:
        yield lambda act: [
            job.result(timeout=120) for job in [pool.submit(one, act, n) for n in range(size)]
        ]
        for job in [pool.submit(_leave, barrier) for _ in range(size)]:
            job.result(timeout=60)


def _leave(barrier: Barrier) -> None:
    barrier.wait(timeout=60)
    connection.close()


def people(count: int) -> list[Principal]:
    """Callers that may all answer, their rights read before the race."""
    found = [factories.person(f"racer-{number}") for number in range(count)]
    for who in found:
        assert who.tokens
    return found


def codes(results: list[Any]) -> Counter[str]:
    return Counter(r.code if isinstance(r, GateError) else "ok" for r in results)


@pytest.mark.timeout(600)
def test_of_many_claims_exactly_one_wins_every_time() -> None:
    racers = people(THREADS)
    gates = [
        factories.external_request(stream="race", gate_id=f"g{n}", audience={})
        for n in range(ROUNDS)
    ]

    with crowd(THREADS) as together:
        for gate in gates:
            results = together(lambda n, pk=gate.pk: services.claim(pk, principal=racers[n]))  # type: ignore[misc]  # a default binds the round's gate
            assert codes(results) == {"ok": 1, "claimed": THREADS - 1}
            [winner] = [r for r in results if not isinstance(r, GateError)]
            row = Request.objects.get(pk=gate.pk)
            assert (row.status, row.holder) == ("claimed", winner.request.holder)
            losers = [r for r in results if isinstance(r, AlreadyClaimed)]
            assert {r.details["holder"] for r in losers} == {row.holder}

    assert factories.event_kinds(gates[0].run).count("callback-claimed") == ROUNDS


@pytest.mark.parametrize("round_", range(10))
def test_of_mixed_answers_at_once_exactly_one_counts(round_: int) -> None:
    racers = people(20)
    names = [who.user.username for who in racers if who.user is not None]
    gate = factories.pending_gate(audience={"users": names})
    run = Run.objects.get(pk=gate.run_id)

    def answer(number: int) -> services.Receipt:
        return services.submit(
            gate.pk,
            principal=racers[number],
            token=None,
            digest=gate.digest,
            response={"approved": number % 2 == 0},
        )

    with crowd(20) as together:
        results = together(answer)

    assert codes(results) == {"ok": 1, "answered": 19}
    kinds = factories.event_kinds(run, prefix="")
    assert kinds.count("callback-submitted") == 1
    assert kinds.count("job:end") == 1
    [winner] = [r for r in results if isinstance(r, services.Receipt)]
    assert Response.objects.get(request=gate).response == winner.response
    told = [r.details["response"] for r in results if isinstance(r, AlreadyAnswered)]
    assert told == [winner.response] * 19


def test_one_token_used_by_many_hands_at_once_answers_once() -> None:
    ada = factories.ada()
    gate = factories.external_request()
    token = services.claim(gate.pk, principal=ada).token

    def answer(number: int) -> services.Receipt:
        return services.submit(
            gate.pk, principal=ada, token=token, digest=gate.digest, response={"approved": True}
        )

    with crowd(12) as together:
        receipts = together(answer)

    assert [receipt.already_resolved for receipt in receipts].count(False) == 1
    assert len({receipt.seq for receipt in receipts}) == 1
    assert factories.event_kinds(gate.run).count("callback-submitted") == 1


def test_a_release_and_an_answer_at_once_leave_one_of_two_endings() -> None:
    ada = factories.ada()
    with crowd(2) as together:
        for number in range(20):
            gate = factories.external_request(stream="r", gate_id=f"g{number}")
            token = services.claim(gate.pk, principal=ada).token

            def act(n: int, gate: Request = gate, token: str = token) -> Any:
                if n:
                    return services.release(gate.pk, principal=ada, token=token)
                return services.submit(
                    gate.pk,
                    principal=ada,
                    token=token,
                    digest=gate.digest,
                    response={"approved": True},
                )

            results = together(act)
            status = Request.objects.get(pk=gate.pk).status
            if status == "answered":
                assert isinstance(results[1], NotClaimed)
            else:
                assert status == "pending"
                assert isinstance(results[0], NotClaimed)


def test_many_first_questions_of_one_stream_open_it_once() -> None:
    bot = factories.key()
    assert bot.tokens

    def ask(number: int) -> bool:
        definition = {
            "gateId": f"gate-{number % 2}",
            "gateVersion": 1,
            "decisionText": "?",
            "responseSchema": {},
            "input": None,
        }
        return services.post_request(definition, principal=bot, stream="new")[1]

    with crowd(16) as together:
        results = together(ask)

    assert results.count(True) == 2
    assert Run.objects.filter(stream="new").count() == 1
    assert Request.objects.count() == 2


CLAIMER = """
import sys
import django
django.setup()
from django.contrib.auth.models import User
from gates import services
from gates.errors import AlreadyClaimed
from runs.people.principals import Principal
me = Principal.for_user(User.objects.get(username=sys.argv[1]))
me.tokens
print("ready", flush=True)
for line in sys.stdin:
    try:
        print("ok", services.claim(line.strip(), principal=me).request.holder, flush=True)
    except AlreadyClaimed as refusal:
        print("claimed", refusal.details["holder"], flush=True)
"""


@pytest.mark.timeout(600)
def test_of_many_processes_exactly_one_claims_each_question() -> None:
    people(PROCESSES)
    gates = [
        factories.external_request(stream="race", gate_id=f"g{n}", audience={})
        for n in range(ROUNDS)
    ]

    with claimers() as together:
        for gate in gates:
            told = together(str(gate.pk))
            assert Counter(code for code, _ in told) == {"ok": 1, "claimed": PROCESSES - 1}
            row = Request.objects.get(pk=gate.pk)
            assert row.status == "claimed"
            assert {holder for _, holder in told} == {row.holder}

    assert factories.event_kinds(gates[0].run).count("callback-claimed") == ROUNDS


@contextmanager
def claimers() -> Iterator[Callable[[str], list[list[str]]]]:
    """Processes that all claim the question they are named; gives back what each was told."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
        "DATABASE_URL": _address(),
        "OBVERSA_SECRET_KEY": settings.SECRET_KEY,
        "PYTHONPATH": str(ROOT),
    }
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, f"racer-{number}"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        assert [_heard(runner) for runner in runners] == [["ready"]] * PROCESSES
        yield lambda question: _all_told(runners, question)
    finally:
        for runner in runners:
            runner.kill()
            runner.communicate()


def _all_told(runners: list[subprocess.Popen[str]], question: str) -> list[list[str]]:
    for runner in runners:
        assert runner.stdin is not None
        runner.stdin.write(question + "\n")
        runner.stdin.flush()
    return [_heard(runner) for runner in runners]


def _heard(runner: subprocess.Popen[str]) -> list[str]:
    assert runner.stdout is not None
    return runner.stdout.readline().split()


def _address() -> str:
    """The test's own database as another process reaches it."""
    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{facts['NAME']}"
    secret = f":{facts['PASSWORD']}" if facts["PASSWORD"] else ""
    return f"postgres://{facts['USER']}{secret}@{facts['HOST']}:{facts['PORT']}/{facts['NAME']}"
