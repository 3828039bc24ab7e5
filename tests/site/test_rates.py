from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from obversa_site import rates
from obversa_site.api import api
from obversa_site.rates import OwnBuckets, Rate, SharedBuckets
from runs import fn_job
from runs.models import Run
from tests import factories, flows
from tests.gates.calls import DEFINITION, Api, person, program
from tests.needs import need

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_buckets() -> Iterator[None]:
    rates.buckets.cache_clear()
    yield
    rates.buckets.cache_clear()


@pytest.fixture
def three(settings: LazySettings) -> None:
    """Three calls at once, and then one a minute."""
    settings.OBVERSA_API_RATE = "60/hour burst 3"


def statuses(who: Api, count: int, path: str = "/runs") -> list[int]:
    return [who.get(path).status_code for _ in range(count)]


# --- the bucket ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("600/min", Rate("x", 600, 60, 600)),
        ("20/s burst 40", Rate("x", 20, 1, 40)),
        ("600/min burst 100", Rate("x", 600, 60, 100)),
        ("0", None),
        ("", None),
    ],
)
def test_a_rate_is_read_from_its_setting(text: str, is_so: Rate | None) -> None:
    assert Rate.of("x", text) == is_so


@pytest.mark.parametrize("text", ["600", "many/min", "600/day", "-1/min", "5/min burst 0", "/min"])
def test_what_is_no_rate_is_said_when_the_site_starts(text: str, settings: LazySettings) -> None:
    with pytest.raises(ImproperlyConfigured, match="600/min"):
        Rate.of("x", text)
    settings.OBVERSA_API_RATE = text

    assert "obversa.E020" in [message.id for message in run_checks()]


def test_a_bucket_gives_its_burst_and_then_one_by_one() -> None:
    rate = Rate("x", 60, 60, 3)
    spent, full_at = rates._spent(rate, 0.0, 100.0)
    assert (spent.is_let, spent.left) == (True, 2)
    for left in (1, 0):
        spent, full_at = rates._spent(rate, full_at, 100.0)
        assert (spent.is_let, spent.left) == (True, left)

    refused, same = rates._spent(rate, full_at, 100.25)

    assert (refused.is_let, refused.wait, same) == (False, 0.75, full_at)
    assert rates._spent(rate, full_at, 101.0)[0].is_let
    assert rates._spent(rate, full_at, 200.0)[0].left == 2


def test_of_many_calls_at_once_as_many_are_let_as_there_are_tokens() -> None:
    own, rate = OwnBuckets(), Rate("x", 1, 3600, 50)
    let: list[bool] = []
    barrier = threading.Barrier(8)

    def call() -> None:
        barrier.wait(30)
        let.extend(own.spend(rate, "ada").is_let for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert (let.count(True), len(let)) == (50, 160)


@pytest.mark.redis
def test_processes_count_together_in_redis() -> None:
    address, rate = need("redis"), Rate("test", 1, 60, 3)
    first, second = SharedBuckets(address), SharedBuckets(address)
    who = f"key:{id(first)}-{threading.get_ident()}"
    spent = [buckets.spend(rate, who) for buckets in (first, second, first, second)]
    first._redis.delete(f"obversa:rate:test:{who}")

    assert [one.is_let for one in spent] == [True, True, True, False]
    assert [one.left for one in spent] == [2, 1, 0, 0]
    assert 59 < spent[-1].wait <= 60
    assert second.spend(rate, f"{who}-other").is_let


def test_a_redis_that_is_away_lets_calls_through_and_is_not_waited_for_again() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        shared = SharedBuckets(f"redis://127.0.0.1:{free.getsockname()[1]}/0")
        assert all(shared.spend(Rate("x", 1, 60, 1), "ada").is_let for _ in range(5))
        assert shared._away_until > 0


# --- callers -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("three")
def test_a_caller_with_too_many_calls_is_told_when_to_come_back() -> None:
    who = program()
    good = who.get("/runs")
    assert statuses(who, 2) == [200, 200]

    refused = who.get("/runs")

    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "too-many-requests"
    assert 0 < int(refused["Retry-After"]) <= 60
    assert good["RateLimit-Policy"] == '"calls";q=3;w=180'
    assert good["RateLimit"].startswith('"calls";r=2;t=')
    assert refused["RateLimit"].startswith('"calls";r=0;t=')


@pytest.mark.usefixtures("three")
def test_each_caller_has_a_bucket_of_their_own_and_a_person_one_for_all_keys() -> None:
    ada = factories.ada()
    bot, other = program("bot"), program("other")
    assert statuses(bot, 4)[-1] == 429
    assert statuses(other, 1) == [200]

    mine = [person(ada), program("adas", user=ada.user), program("adas-too", user=ada.user)]

    assert [statuses(one, 1) for one in mine] == [[200]] * 3
    assert [statuses(one, 1) for one in mine] == [[429]] * 3


@pytest.mark.usefixtures("three")
def test_who_is_not_known_is_counted_by_address_and_takes_nothing_from_others_there() -> None:
    nobody, guesser = Api(Client()), Api(Client(), {"Authorization": "Bearer wrong"})

    assert statuses(nobody, 2) == [401, 401]
    assert statuses(guesser, 2) == [401, 429]
    assert statuses(program(), 3) == [200, 200, 200]


def test_what_costs_more_has_a_smaller_bucket_of_its_own(settings: LazySettings) -> None:
    settings.OBVERSA_API_RATE = "60/hour burst 50"
    settings.OBVERSA_API_COSTLY_RATE = "60/hour burst 2"
    name, who = flows.offer(fn_job("one", lambda ctx: "done")), program()

    started = [who.post("/runs", {"workflow": name}) for _ in range(3)]
    asked = who.post("/requests", {**DEFINITION, "stream": "s"})

    assert [one.status_code for one in started] == [201, 201, 429]
    assert asked.status_code == 429
    assert Run.objects.count() == 2
    assert started[0]["RateLimit"].count(";r=") == 2
    assert statuses(who, 3) == [200, 200, 200]


@pytest.mark.usefixtures("three")
def test_a_refused_stream_and_a_refused_wait_are_refused_alike() -> None:
    run = factories.make_run(started_by="key:bot")
    who = program("bot")
    assert statuses(who, 3) == [200] * 3

    refused = [who.get(f"/runs/{run.pk}/{what}") for what in ("stream", "events?wait=5")]

    assert [one.status_code for one in refused] == [429, 429]
    assert all(one["Retry-After"] for one in refused)


@pytest.mark.usefixtures("three")
def test_pages_are_not_counted() -> None:
    client = Client()
    client.force_login(factories.user("ada"))

    assert [client.get("/runs/").status_code for _ in range(6)] == [200] * 6


def test_without_a_rate_nothing_is_counted_or_said() -> None:
    answers = [program().get("/runs"), Api(Client()).get("/runs")]

    assert not any("RateLimit" in answer for answer in answers)


def test_every_costly_operation_is_one_of_the_api_and_every_operation_names_429() -> None:
    routes = {str(pattern.pattern) for pattern in api.urls[0]}
    paths: dict[str, Any] = api.get_openapi_schema()["paths"]

    assert {route for _, route in rates.COSTLY} <= routes
    for operations in paths.values():
        for operation in operations.values():
            assert 429 in operation["responses"]
            assert "Retry-After" in operation["responses"][429]["headers"]
