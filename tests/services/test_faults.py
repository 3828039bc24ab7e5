"""A short form of `python -m tests.faults`: nothing ends wrong, and nothing is done twice."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.faults import home
from tests.faults.faults import SHORT

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]
RUNS = 2


@pytest.mark.parametrize(
    "broker",
    [
        pytest.param("redis", marks=pytest.mark.redis),
        pytest.param("amqp", marks=pytest.mark.rabbitmq),
    ],
)
def test_no_fault_makes_a_run_end_wrong_or_does_anything_twice(broker: str) -> None:
    url = home.address_of(connection.settings_dict)

    rows = list(home.rows(broker, url, "--short", "--runs", str(RUNS), lease_seconds=2.0))

    assert [row["fault"] for row in rows] == list(SHORT[broker])
    for row in rows:
        assert row["told"] == [], row
        assert (row["wrong"], row["twice"], row["twice_after_asking"]) == (0, 0, 0), row
        assert row["runs"] == RUNS
        assert row["faults"] >= 1, row
