from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.events import Event
from runs.kernel.spending import NOTHING, Spent
from runs.kernel.state import fold, is_folded


def call(path: tuple[str, ...] = (), *, model: str = "m", usd: float | None = None) -> Event:
    fields: dict[str, Any] = {
        "model": model,
        "usage": {
            "kind": "reported",
            "inputTokens": 10,
            "outputTokens": 2,
            "cacheReadInputTokens": 4,
        },
    }
    if usd is not None:
        fields["cost"] = {"kind": "reported", "usd": usd}
    return Event("engine:usage", path, fields)


def test_calls_add_up() -> None:
    spent = NOTHING.plus(call(usd=0.1).fields).plus(call(usd=0.2).fields)
    spent = spent.plus({"model": "odd", "usage": {"kind": "unknown"}, "failed": True})

    assert spent.usage() == {
        "inputTokens": 20,
        "outputTokens": 4,
        "cacheReadInputTokens": 8,
        "cacheCreationInputTokens": 0,
        "unmeasuredCalls": 1,
    }
    assert spent.cost() == {
        "usd": 0.3,
        "reportedUsd": 0.3,
        "estimatedUsd": 0.0,
        "unknownCalls": 1,
        "unknownModels": ["odd"],
    }


def test_where_no_engine_was_called_there_are_no_figures() -> None:
    assert NOTHING.figures() == {}


def start(session: int = 1) -> Event:
    return Event("run:start", (), {"session": session})


def test_a_session_counts_its_own_calls_and_the_record_all() -> None:
    state = fold([start(), call(), call(), start(2), call()])

    assert state.spent.calls == 1
    assert state.spent_in_all.calls == 3


def test_a_step_may_tell_what_it_used() -> None:
    assert not is_folded("engine:usage")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
TOKENS = st.fixed_dictionaries(
    {}, optional={"kind": st.just("reported") | JSON, "inputTokens": JSON, "outputTokens": JSON}
)
PAID = st.fixed_dictionaries(
    {}, optional={"kind": st.sampled_from(["reported", "estimated", "unknown"]), "usd": JSON}
)


@given(usage=TOKENS | JSON, cost=PAID | JSON, model=JSON)
def test_whatever_a_step_tells_can_be_counted(usage: Any, cost: Any, model: Any) -> None:
    spent = NOTHING.plus({"usage": usage, "cost": cost, "model": model})

    assert isinstance(spent, Spent)
    assert spent.calls == 1
    assert min(spent.input_tokens, spent.output_tokens, spent.usd) >= 0
    known = spent.input_tokens or spent.output_tokens
    assert not (known and spent.unmeasured_calls)
