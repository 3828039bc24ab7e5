"""Whatever is sent to the API, by whomever: no fault of ours, no answer the description denies.

The edges of every schema are tried, and a few random values by every caller.
`OBVERSA_TEST_EXAMPLES=1000` tries more of those, and others each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from zlib import crc32

import pytest
import schemathesis
from django.db import transaction
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.transport import Response
from schemathesis.generation.stateful import run_state_machine_as_test
from schemathesis.specs.openapi import checks

from obversa_site.api_docs import described
from tests.site.description.callers import CALLERS, MIGHTY, Caller, Places

MORE: Final = os.environ.get("OBVERSA_TEST_EXAMPLES")
pytestmark = [pytest.mark.django_db, *([pytest.mark.timeout(0)] if MORE else [])]

EXAMPLES: Final = int(MORE or 5)
CHECKS: Final = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.missing_required_header,
    checks.unsupported_method,
    checks.allow_header_conformance,
    checks.use_after_free,
    checks.ensure_resource_availability,
]
QUICK: Final = settings(
    max_examples=EXAMPLES,
    derandomize=not MORE,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

schema = schemathesis.openapi.from_dict(described())
schema.config.update(base_url="http://testserver")


@pytest.fixture
def places(db: None) -> Places:
    return Places()


@pytest.fixture
def callers(places: Places) -> dict[str, Caller]:
    return {name: Caller.called(name) for name in CALLERS}


@schema.parametrize()
@QUICK
def test_every_answer_is_as_described(
    case: Any, places: Places, callers: dict[str, Caller]
) -> None:
    lead_somewhere(case, places)
    is_random = case.meta.phase.name.value == "fuzzing"
    for name in CALLERS if is_random else MIGHTY:
        with undone():
            response = callers[name].send(case)
        case.validate_response(response, checks=CHECKS)
        is_let_in(case, response)


def lead_somewhere(case: Any, places: Places) -> None:
    """Put ids that exist into two of three cases; what was made up to be refused stays."""
    for made_up, entry in ((case.headers, "Authorization"), (case.cookies, "sessionid")):
        if made_up:
            made_up.pop(entry, None)  # each caller has its own
    hold_nobody_up(case, places)
    chance = crc32(repr((case.path_parameters, case.query, case.body)).encode("utf-8", "replace"))
    if chance % 3 == 0:
        return
    noun = case.path.split("/")[3]
    if case.path_parameters and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters["id"] = places.of[noun][chance % len(places.of[noun])]
        if "digest" in case.path_parameters:
            case.path_parameters |= {"id": places.ended, "digest": places.file}
        hold_nobody_up(case, places)
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        known = {"digest": places.digest} if "{id}" in case.path else {"workflow": places.workflow}
        case.body |= {name: value for name, value in known.items() if name in case.body}


def hold_nobody_up(case: Any, places: Places) -> None:
    """A stream goes on for as long as its run, and a poll for as long as it is told to."""
    if case.path.endswith("/stream") and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters["id"] = places.ended
    if isinstance(case.query, dict) and not case.meta.is_negative_at(ParameterLocation.QUERY):
        case.query |= {"wait": 0} if "wait" in case.query else {}


def is_let_in(case: Any, response: Response) -> None:
    """What fits the schema is refused for what it means, never for its form."""
    if case.meta.generation.mode.is_negative or response.status_code not in (400, 422):
        return
    refused = response.json()["error"]
    assert refused["code"] != "validation", (case.body, case.query, refused)


@contextmanager
def undone() -> Iterator[None]:
    """Take back what the block changed, so that every case finds the same things."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("name", MIGHTY)
def test_what_follows_an_answer_is_as_described_too(places: Places, name: str) -> None:
    caller = Caller.called(name)

    class Walk(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            self._left = ExitStack()
            self._left.enter_context(undone())

        def teardown(self) -> None:
            self._left.close()
            super().teardown()

        def call(self, case: Any, **_: Any) -> Response:
            if case.path.endswith("/runs"):
                lead_somewhere(case, places)
            hold_nobody_up(case, places)
            return caller.send(case)

        def validate_response(self, response: Any, case: Any, *_: Any, **__: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    run_state_machine_as_test(Walk, settings=settings(QUICK, stateful_step_count=12))
