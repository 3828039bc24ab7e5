"""Small shapes as plain data, and a strategy for random ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from runs.kernel.conditions import all_of, always, any_of, failed, never, not_, passed
from runs.kernel.graph import (
    AskShape,
    GraphShape,
    LeafShape,
    LoopShape,
    NodeShape,
    RetryRule,
    Shape,
    StallRule,
)


def step(label: str = "step", **more: Any) -> LeafShape:
    return LeafShape(kind="fn", label=label, **more)


def ask(label: str = "ask", question: str = "Ship it?", **more: Any) -> LeafShape:
    shape = AskShape(question=question, **more)
    return LeafShape(kind="approval", label=label, by_worker=False, retry_safe=True, ask=shape)


def node(name: str, *needs: str, **more: Any) -> NodeShape:
    job = more.pop("job", None) or step(name)
    return NodeShape(name=name, job=job, needs=needs, **more)


def graph(*nodes: NodeShape, name: str = "g", **more: Any) -> GraphShape:
    return GraphShape(name=name, nodes=nodes, **more)


CODE = {"op": "code", "label": "check", "code": "0" * 64}
NAMES = ("a", "b", "c", "d", "e")


@st.composite
def leaves(draw: st.DrawFn, name: str, targets: list[str]) -> LeafShape:
    if draw(st.integers(0, 3)):
        return step(name, retry_safe=draw(st.booleans()))
    target = draw(st.sampled_from([None, *targets]))
    subjects: list[dict[str, Any]] = [{}, {"input": None}, {"input": {"n": 1}}]
    given = draw(st.sampled_from(subjects))
    return ask(
        draw(st.sampled_from([name, "shared"])),
        **given,
        has_input="input" in given,
        target=target,
        per_attempt=draw(st.booleans()),
    )


@st.composite
def whens(draw: st.DrawFn, needs: list[str]) -> Any:
    simple = [always.shape, never.shape, CODE]
    for name in needs:
        simple += [passed(name).shape, failed(name).shape, not_(passed(name)).shape]
        simple += [any_of(failed(name), always).shape, all_of(passed(name), always).shape]
    return draw(st.sampled_from(simple))


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2, name: str = "g") -> GraphShape:
    nodes: list[NodeShape] = []
    reach: dict[str, set[str]] = {}
    for label in NAMES[: draw(st.integers(0 if depth < 2 else 1, 5 if depth == 2 else 3))]:
        needs = [other for other in reach if draw(st.booleans())]
        reach[label] = set(needs).union(*(reach[other] for other in needs))
        back = [other for other in sorted(reach[label]) if draw(st.booleans())]
        nested = depth > 0 and draw(st.integers(0, 3)) == 0
        inner = st.one_of(graphs(depth - 1, f"{name}{label}"), loops(depth - 1, f"l{label}"))
        job: Any = draw(inner if nested else leaves(label, back))
        when = draw(whens(needs)) if draw(st.integers(0, 3)) == 0 else None
        nodes.append(
            NodeShape(
                name=label,
                job=job,
                needs=tuple(needs),
                when=when,
                optional=draw(st.booleans()),
                accepts_kickback_to=tuple(back),
                retry_safe=draw(st.booleans()),
            )
        )
    counts = st.integers(0, 2)
    names = [made.name for made in nodes]
    limits: Any = st.none() | counts
    if names:
        limits |= st.dictionaries(st.sampled_from(names), counts, max_size=3)
    return GraphShape(
        name=name,
        nodes=tuple(nodes),
        concurrency=draw(st.none() | st.integers(1, 2)),
        stop_on_error=draw(st.booleans()),
        max_kickbacks=draw(limits),
        pause_policy=draw(st.sampled_from(["continue", "continue", "stop"])),
    )


@st.composite
def loops(draw: st.DrawFn, depth: int = 2, name: str = "l") -> LoopShape:
    """A loop that must come to an end: every body may have three rounds at most."""
    checks = st.sampled_from([always.shape, never.shape, CODE])
    until = draw(st.none() | checks)
    counts = st.none() | st.integers(1, 2)
    window = draw(counts)
    stall = None
    if window is not None:
        signal = draw(st.sampled_from(["", "0" * 64]))
        stall = StallRule(window=window, workspace=draw(st.booleans()), gate=True, signal=signal)
    retry = RetryRule(fails=draw(st.booleans()), max_consecutive=draw(counts), backoff_ms=5)
    return LoopShape(
        name=name,
        body=draw(_bodies(depth, "g")),
        review=draw(st.none() | _bodies(depth, draw(st.sampled_from(["g", "h"])))),
        start=draw(st.sampled_from([None, None, always.shape, CODE])),
        until=until,
        stop_on=draw(st.sampled_from([None, None, never.shape, CODE])),
        max=draw(st.integers(1, 3)),
        max_review_restarts=draw(counts),
        check_first=until is not None and draw(st.booleans()),
        no_progress=stall,
        delay_ms=draw(st.sampled_from([0, 7])),
        retry=draw(st.none() | st.just(retry)),
        on_iteration=draw(st.sampled_from(["", "0" * 64])),
        on_complete=draw(st.sampled_from(["", "0" * 64])),
        keeps_rounds=draw(st.integers(0, 3)) == 0,
    )


def _bodies(depth: int, name: str) -> st.SearchStrategy[Shape]:
    if depth <= 0:
        return leaves(name, [])
    return st.one_of(leaves(name, []), graphs(depth - 1, name), loops(depth - 1, name))


def shapes() -> st.SearchStrategy[Shape]:
    """Any shape that holds others."""
    return st.one_of(graphs(), loops(depth=1))
