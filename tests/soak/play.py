"""One soak from its first process to its verdict."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

from tests.receivers import receiver
from tests.soak.house import House, house
from tests.soak.ledger import Ledger

if TYPE_CHECKING:
    from tests.soak.crowd import Person
    from tests.soak.judge import Judgement

WORKFLOWS = "tests.faults.work,tests.soak.flows"
ANSWERERS = 4
OPERATORS = 3
# How long everything may take to come to rest once nobody is killed any more.
SETTLING_SECONDS = 300.0
LAST_WORD_SECONDS = 60.0
PAGES_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How long, how many, how often."""

    minutes: float
    broker: str = "rabbitmq"
    people: int = 50
    # How many of them sit at a Chromium, too.
    pages: int = 2
    every: float = 1.5
    kill_every: float = 8.0
    seed: int = 0
    # Roll a new version out instead of killing.
    rolls: bool = False


def play(home: Path, options: Options) -> tuple[Judgement, Ledger]:
    """Start everything, load it, kill it, let it settle, and judge."""
    # Asked to stop, it leaves no process behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ledger = Ledger()
    with receiver() as outside:
        os.environ["OBVERSA_SOAK_OUTSIDE"] = outside.url
        with house(home, options.broker, WORKFLOWS) as made:
            _be_django(made)
            # What needs Django is loaded once it knows its database.
            from tests.soak.breaker import Breaker
            from tests.soak.browsers import Chromium
            from tests.soak.crowd import Crowd, at_work
            from tests.soak.judge import judge, judge_rollout
            from tests.soak.pages_judge import judge_pages
            from tests.soak.roller import Roller
            from tests.soak.watchers import Audience

            persons, starter = people(options.people)
            crowd = Crowd(made.address, persons, starter, ledger, outside)
            _until(lambda: _can_start(crowd), 90, "workflows that may be started")
            threads = at_work(crowd, options.every, ANSWERERS)
            audience = Audience(crowd)
            audience.begin()
            chromium = Chromium(crowd, options.pages)
            chromium.begin()
            breaker: Breaker | Roller = (
                Roller(made, ledger, options.kill_every)
                if options.rolls
                else Breaker(made, ledger, options.kill_every, options.seed)
            )
            say(f"under load at {made.address}")
            ledger.begin()
            breaker.begin()
            _for_minutes(options.minutes, ledger)
            say("no more kills, no more runs")
            breaker.end()
            crowd.loading.clear()
            settle(ledger)
            _for_pages(chromium)
            last_word(crowd, [*audience.inboxes, *chromium.inboxes], ledger)
            audience.end()
            chromium.end()
            crowd.over.set()
            for thread in threads:
                thread.join(60)
            say("judging")
            ledger.told += made.overstayed()
            found = judge(ledger, outside.messages, audience.inboxes)
            judge_pages(chromium, found)
            if isinstance(breaker, Roller):
                judge_rollout(ledger, found, breaker)
            return found, ledger


def say(text: str) -> None:
    """A word on how far it is."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def _be_django(made: House) -> None:
    """This process too knows the database: it makes the people, and judges at the end."""
    os.environ.update(made.environment)
    import django

    django.setup()


def people(count: int) -> tuple[list[Person], str]:
    """So many people with sessions and keys, some of them operators; and the key of a program."""
    from django.contrib.auth.models import User
    from django.test import Client

    from gates import keys
    from tests.soak.crowd import Person

    found = []
    for number in range(count):
        operates = number < OPERATORS
        user = User(username=f"person{number}", is_superuser=operates, is_staff=operates)
        user.set_unusable_password()
        user.save()
        client = Client()
        client.force_login(user)
        scopes = ["read", "claim", "answer", "operate"]
        found.append(
            Person(
                name=user.username,
                actor=f"user:{user.pk}",
                key=keys.create_key(f"key{number}", scopes, user)[1],
                cookie=f"sessionid={client.cookies['sessionid'].value}",
                operates=operates,
            )
        )
    return found, keys.create_key("program", ["read", "start"])[1]


def _can_start(crowd: Any) -> bool:
    """Workers tell what there is to start."""
    from tests.soak import flows

    answer = crowd.call("list workflows", "GET", "/workflows?limit=100", crowd.starter)
    names = {item["name"] for item in answer.json()["items"]} if answer is not None else set()
    return names.issuperset(flows.PLANS)


def _until(is_so: Callable[[], Any], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not seen within {seconds:.0f} s")
        time.sleep(0.2)


def _for_minutes(minutes: float, ledger: Ledger) -> None:
    began = told = time.monotonic()
    while (now := time.monotonic()) < began + minutes * 60:
        time.sleep(1)
        if now - told > 60:
            told = now
            kills = sum(ledger.kills.values())
            say(f"runs={len(ledger.runs)} answers={len(ledger.answers)} kills={kills}")


def settle(ledger: Ledger) -> None:
    """Wait until every run has ended; what has not by then is for the judge to tell."""
    from runs.attempts.steady import steadily
    from runs.models import Run

    began = time.monotonic()
    left = 1
    while left and time.monotonic() < began + SETTLING_SECONDS:
        time.sleep(1)
        ours = Run.objects.filter(pk__in=list(ledger.runs), ended_at__isnull=True)
        # This process's connection may be one of those that broke.
        left = steadily(ours.count)
    say(f"settled after {time.monotonic() - began:.0f} s, {left} runs left")


def _for_pages(chromium: Any) -> None:
    """Wait until each page has shown its run; what it has not by then is for the judge to tell."""
    end = time.monotonic() + PAGES_SECONDS
    while not chromium.is_settled and time.monotonic() < end:
        time.sleep(0.5)


def last_word(crowd: Any, inboxes: list[Any], ledger: Ledger) -> None:
    """One question more, for everybody: each inbox has to hear of it, however often it broke."""
    asked = requests.post(
        f"{crowd.address}/api/v1/requests",
        json={
            "gateId": "last-word", "gateVersion": 1, "decisionText": "Is everybody here?",
            "responseSchema": {"type": "object", "properties": {}}, "input": None,
            "stream": "last-word", "audience": {"users": [one.name for one in crowd.persons]},
        },
        headers={"Authorization": f"Bearer {crowd.starter}"}, timeout=30,
    )  # fmt: skip
    if asked.status_code != 201:
        ledger.tell(f"the last word was answered {asked.status_code}: {asked.text[:300]}")
    end = time.monotonic() + LAST_WORD_SECONDS
    while time.monotonic() < end and any(page.count != 1 for page in inboxes):
        time.sleep(0.5)
    # The pages of runs that ended last stay a little longer too.
    time.sleep(8)
