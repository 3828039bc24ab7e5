from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs import fn_job, fragments, pipeline
from runs.models import Run
from runs.turns import spending
from tests import factories, flows
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db


def call(**fields: Any) -> dict[str, Any]:
    reported = {"kind": "reported", "inputTokens": 1200, "outputTokens": 300}
    return {"model": "small-1", "usage": reported, **fields}


def calling(*calls: dict[str, Any]) -> Run:
    """A run whose steps make these engine calls, one each."""

    def step(given: dict[str, Any]) -> Any:
        return lambda ctx: ctx.emit("engine:usage", **given)

    return flows.start(
        pipeline(
            "calling",
            [{"name": f"s{n}", "job": fn_job("s", step(one))} for n, one in enumerate(calls)],
        )
    )


PRICED = call(cost={"kind": "reported", "usd": 0.25})
ESTIMATED = call(cost={"kind": "estimated", "usd": 0.005, "entry": "small-1"})
UNPRICED = call()
UNMEASURED = call(usage={"kind": "unknown"}, failed=True)


@pytest.mark.parametrize(
    ("calls", "line", "how"),
    [
        ([PRICED, ESTIMATED], "2,400 tokens in, 600 out, $0.255", "2 engine calls"),
        (
            [PRICED, UNPRICED],
            "2,400 tokens in, 600 out, at least $0.25",
            "2 engine calls, 1 of unknown cost",
        ),
        ([UNPRICED], "1,200 tokens in, 300 out", "1 engine call, 1 of unknown cost"),
        (
            [UNMEASURED],
            "usage unknown",
            "1 engine call, 1 of unknown usage, 1 of unknown cost",
        ),
    ],
)
def test_what_is_not_known_is_said(calls: list[dict[str, Any]], line: str, how: str) -> None:
    run = calling(*calls)
    flows.work(run)

    assert spending.told(flows.fresh(run)) == (line, how)


def test_a_run_without_engine_calls_says_nothing() -> None:
    run = factories.make_run()

    assert spending.told(run) == ("", "")
    page = page_of(client_of(factories.ben()).get(f"/runs/{run.pk}/"))
    assert page.all(class_="run-spent") == []


def test_the_page_of_a_run_shows_what_it_spent() -> None:
    run = calling(PRICED)
    flows.work(run)

    client = client_of(factories.ben())
    [spent] = page_of(client.get(run.get_absolute_url())).all(class_="run-spent")

    assert spent.text == "1,200 tokens in, 300 out, $0.25"
    assert spent.get("title") == "What 1 engine call used and cost"


def test_the_record_tells_it_at_the_steps_and_at_the_end() -> None:
    run = calling(PRICED, ESTIMATED)
    flows.work(run)

    [end] = flows.events(run, "run:end")
    done = [one for one in flows.events(run, "dag:node") if one.fields["phase"] == "done"]
    assert end.fields["usage"]["inputTokens"] == 2400
    assert end.fields["cost"]["usd"] == 0.255
    assert [one.fields["cost"]["usd"] for one in done] == [0.25, 0.005]


def test_only_what_is_new_is_read(django_assert_num_queries: Any) -> None:
    run = calling(PRICED, PRICED)
    flows.work(run)
    run = flows.fresh(run)

    with django_assert_num_queries(1):
        spending.spent(run)
    with django_assert_num_queries(0):
        spending.spent(run)
    # What a page's frame read anyway is not read again.
    more = Run.objects.get(pk=run.pk)
    more.last_seq += 1
    extra = flows.events(run, "engine:usage")[0]
    with django_assert_num_queries(0):
        spending.saw(run.pk, [replace(extra, seq=more.last_seq)])
        assert spending.spent(more).calls == 3
    # Events that do not follow are left to the next reading.
    spending.saw(run.pk, [replace(extra, seq=more.last_seq + 5)])
    assert spending.spent(more).calls == 3


def test_a_frame_of_a_page_brings_what_was_spent_since() -> None:
    run = calling(PRICED, PRICED)
    known: dict[str, str] = {}
    fragments.frame(flows.fresh(run), [], known)
    assert "run-spent" not in known["run-status"]
    before = flows.fresh(run).last_seq
    flows.work(run)
    now = flows.fresh(run)

    fragments.frame(now, flows.events(now)[before:], known)

    assert "2,400 tokens in, 600 out, $0.50" in known["run-status"]
