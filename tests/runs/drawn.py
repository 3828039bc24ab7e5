"""Real jobs made of drawn shapes: what each step comes to is settled by a seed and its attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from runs.drivers.context import Context
from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, NodeShape, Shape
from runs.kernel.outcomes import Outcome, kickback
from runs.kernel.slots import WHEN
from runs.shapes.job import Graph, Job, Leaf, Loop

ENDS = ("pass", "pass", "pass", "fail", "exhausted", "raise", "back", "back", "warn", "stray")
ANSWERS = ({"approved": True}, {"approved": True}, {"approved": False, "note": "not yet"})


@dataclass
class World:
    """What the steps of one run leave outside, and what happens to it after an effect."""

    seed: int
    effects: list[str] = field(default_factory=list)
    after_effect: Callable[[], object] = lambda: None
    seen: dict[str, list[str]] = field(default_factory=dict)

    def fate(self, *what: object) -> int:
        """A number that the seed gives to these names, the same in every process."""
        text = "\0".join(map(str, (self.seed, *what)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])

    def name_of(self, mark: str) -> str:
        """Which attempt at its place this is; a mark may count tries of what was there before."""
        place = mark.rpartition("/")[0]
        seen = self.seen.setdefault(place, [])
        if mark not in seen:
            seen.append(mark)
        return f"{place} {seen.index(mark) + 1}"

    def one_of(self, found: tuple[Any, ...], *what: object) -> Any:
        return found[self.fate(*what) % len(found)]

    def answer(self, request_id: str) -> dict[str, Any]:
        """What people say to this question."""
        return dict(self.one_of(ANSWERS, "answer", request_id))

    def job(self, shape: Shape, node: NodeShape | None = None) -> Job:
        """The shape with bodies; `node` is the one that it stands in directly."""
        match shape:
            case LeafShape():
                return self._leaf(shape, node)
            case GraphShape():
                jobs = {one.name: self.job(one.job, one) for one in shape.nodes}
                whens = {
                    one.name: self._condition(one.when, WHEN)
                    for one in shape.nodes
                    if one.when is not None
                }
                return Graph(shape, jobs, whens)
            case LoopShape():
                return self._loop(shape)

    def _leaf(self, shape: LeafShape, node: NodeShape | None) -> Leaf:
        is_safe = shape.retry_safe or (node is not None and node.retry_safe)
        back = () if node is None else node.accepts_kickback_to

        def body(ctx: Context) -> Outcome:
            mark = mark_of(ctx)
            if not is_safe or mark not in self.effects:
                self.effects.append(mark)
            self.after_effect()
            return self._outcome(self.name_of(mark), back)

        return Leaf(shape, body, declared=bool(self.fate("declared", shape.label) % 3))

    def _outcome(self, name: str, back: tuple[str, ...]) -> Outcome:
        kind = self.one_of(ENDS, "end", name)
        if kind == "raise":
            raise ValueError("broken")
        if kind == "stray":
            return kickback("nowhere", "lost")
        if kind in ("back", "warn"):
            if not back:
                return Outcome(status="pass", summary="as it is")
            target = self.one_of(back, "target", name)
            return kickback(target, "once more", status="pass" if kind == "warn" else "fail")
        return Outcome(status=kind, summary=name)

    def _loop(self, shape: LoopShape) -> Loop:
        conditions = {"start": shape.start, "until": shape.until, "stopOn": shape.stop_on}
        return Loop(
            shape,
            self.job(shape.body),
            None if shape.review is None else self.job(shape.review),
            {name: self._condition(c, name) for name, c in conditions.items() if c is not None},
            signal=self._look("signal") if shape.no_progress and shape.no_progress.signal else None,
            on_iteration=self._look("after") if shape.on_iteration else None,
            on_complete=self._look("complete") if shape.on_complete else None,
        )

    def _condition(self, data: Any, task: str) -> Condition:
        if data["op"] != "code":
            parts = tuple(self._condition(part, task) for part in data.get("parts", ()))
            return Condition(data, parts=parts)

        def check(ctx: Context, last: Outcome | None) -> ConditionResult:
            chance = self.fate("check", self.name_of(f"{task} {mark_of(ctx)}")) % 8
            if chance == 0:
                raise ValueError("no idea")
            return ConditionResult(met=chance > 3, reason="because")

        return Condition(data, check=check)

    def _look(self, what: str) -> Callable[[Context], str]:
        def look(ctx: Context) -> str:
            chance = self.fate("look", self.name_of(f"{what} {mark_of(ctx)}")) % 8
            if chance == 0:
                raise ValueError("not to be seen")
            return f"state {chance % 2}"

        return look


def mark_of(ctx: Context) -> str:
    """The name of a logical attempt, whatever the run's id."""
    return ctx.idempotency_key.partition("/")[2]


def in_order(shape: Shape) -> Shape:
    """The same shape with nothing side by side and every step repeatable: one order is possible."""
    match shape:
        case GraphShape():
            nodes = tuple(
                replace(node, job=in_order(node.job), retry_safe=True) for node in shape.nodes
            )
            return replace(shape, nodes=nodes, concurrency=1, pause_policy="stop")
        case LoopShape():
            review = None if shape.review is None else in_order(shape.review)
            return replace(shape, body=in_order(shape.body), review=review)
        case LeafShape():
            return replace(shape, retry_safe=True)
