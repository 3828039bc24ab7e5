from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
from _pytest.terminal import TerminalReporter

from tests.needs import find, need
from tests.passes import astray

if TYPE_CHECKING:
    from runs.attempts.leases import Held
    from tests.gates.calls import Api

SERVICE_OF_MARKER = {
    "browser": "chromium",
    "postgres": "postgres",
    "redis": "redis",
    "rabbitmq": "rabbitmq",
}
DATABASE_FIXTURES = frozenset(
    ("db", "transactional_db", "django_db_reset_sequences", "django_db_setup", "live_server")
)

# Examples are the same on every run, so a red test is red again; explore with another profile. How
# fast they are made says how busy the machine is and nothing of what is tested.
EASY: Final[dict[str, Any]] = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("house", derandomize=True, database=None, **EASY)
hypothesis.settings.register_profile("explore", max_examples=2000, **EASY)
hypothesis.settings.load_profile(os.environ.get("OBVERSA_TEST_HYPOTHESIS", "house"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to each pass what belongs to it: see tests/__main__.py."""
    if lost := astray(items):
        raise pytest.UsageError(*lost)
    on_postgres = os.environ.get("OBVERSA_TEST_DATABASE") == "postgres"
    elsewhere = [item for item in items if not _belongs(item, on_postgres=on_postgres)]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        gone = set(elsewhere)
        items[:] = [item for item in items if item not in gone]


def _belongs(item: pytest.Item, *, on_postgres: bool) -> bool:
    about_postgres = item.get_closest_marker("postgres") is not None
    if on_postgres:
        return about_postgres or _uses_database(item)
    # Without a server there is no second pass; then the first says what was missed, and why.
    return not about_postgres or bool(find("postgres").trouble)


def _uses_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("django_db") or item.get_closest_marker("database"):
        return True
    return not DATABASE_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.fixture(autouse=True)
def own_workflows() -> Iterator[None]:
    """A workflow that a test publishes under a known name is that one again after it."""
    from runs import publishing

    before = dict(publishing._offered)
    yield
    publishing._offered.update(before)


@pytest.fixture(autouse=True)
def own_leases(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a test that commits nothing, no thread finds the leases of its steps gone.

    Another connection sees none of its rows; on PostgreSQL, where it does not wait for them either,
    a beat within such a step would stop it as one that another worker has.
    """
    from runs.attempts.leases import Leases

    marked = request.node.get_closest_marker("django_db")
    if "transactional_db" in request.fixturenames or (marked and marked.kwargs.get("transaction")):
        return
    renew = Leases.renew

    def unless_beside(self: Leases, held: dict[int, Held]) -> None:
        if threading.current_thread().name != "leases":
            renew(self, held)

    monkeypatch.setattr(Leases, "renew", unless_beside)


@pytest.fixture(autouse=True)
def no_errands() -> Iterator[None]:
    """Threads that a message to this process began are no part of the next test."""
    yield
    if tasks := sys.modules.get("gates.tasks"):
        tasks.leaving()


@pytest.fixture
def ada(db: None) -> Api:
    """Who may answer, as a caller of the API."""
    from tests import factories
    from tests.gates.calls import person

    return person(factories.ada())


@pytest.fixture
def ben(db: None) -> Api:
    """Who may look and nothing else, as a caller of the API."""
    from tests import factories
    from tests.gates.calls import person

    return person(factories.ben())


@pytest.fixture
def cyd(db: None) -> Api:
    """Who has no business here, as a caller of the API."""
    from tests import factories
    from tests.gates.calls import person

    return person(factories.cyd())


@pytest.fixture(autouse=True, scope="session")
def _emptied_between_tests() -> Iterator[None]:
    """Empty a test database quickly, although events cannot be deleted (tests/emptying.py)."""
    from tests import emptying

    with pytest.MonkeyPatch.context() as patch:
        emptying.patch(patch)
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ask for the services that a test's markers name."""
    for marker, service in SERVICE_OF_MARKER.items():
        if item.get_closest_marker(marker):
            need(service)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Leave the counts of this pass for the line that sums up all passes."""
    if path := os.environ.get("OBVERSA_TEST_TALLY"):
        counts = {kind: len(reports) for kind, reports in terminalreporter.stats.items() if kind}
        Path(path).write_text(json.dumps(counts), encoding="utf-8")
