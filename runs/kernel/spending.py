"""What engine calls used and cost: summed over a session, a record, an attempt or a round.

Whoever emits `engine:usage` may write anything into it. What is no number counts as unknown; it
is never guessed, and never a silent 0 (runs.md R201, R212, R255).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.events import Path
from runs.kernel.evolving import evolve
from runs.kernel.jsonable import JSONValue
from runs.kernel.loops import LoopState
from runs.kernel.numbers import amount_of, count_of, number_of
from runs.kernel.scopes import Scope

KIND: Final = "engine:usage"
DECIMALS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The sum of some calls; dollars to six decimals.

    Of the calls that did not say what they used, `blind_calls` counts those that did not fail.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    unmeasured_calls: int = 0
    blind_calls: int = 0
    reported_usd: float = 0.0
    estimated_usd: float = 0.0
    unknown_calls: int = 0
    unknown_models: tuple[str, ...] = ()

    def plus(self, call: Mapping[str, Any]) -> Spent:
        """The sum with one more call, as the fields of its `engine:usage` tell it."""
        usage, model = call.get("usage"), call.get("model")
        counted = evolve(self, calls=self.calls + 1)._with_usage(usage)
        if counted.unmeasured_calls > self.unmeasured_calls and call.get("failed") is not True:
            counted = evolve(counted, blind_calls=self.blind_calls + 1)
        return counted._with_cost(call.get("cost"), model if isinstance(model, str) else "")

    def _with_usage(self, usage: object) -> Spent:
        if not isinstance(usage, Mapping) or not is_reported(usage):
            return evolve(self, unmeasured_calls=self.unmeasured_calls + 1)
        return evolve(
            self,
            input_tokens=self.input_tokens + count_of(usage.get("inputTokens")),
            output_tokens=self.output_tokens + count_of(usage.get("outputTokens")),
            cache_read_tokens=self.cache_read_tokens + count_of(usage.get("cacheReadInputTokens")),
            cache_creation_tokens=self.cache_creation_tokens
            + count_of(usage.get("cacheCreationInputTokens")),
        )

    def _with_cost(self, cost: object, model: str) -> Spent:
        usd = amount_of(cost.get("usd")) if isinstance(cost, Mapping) else None
        kind = cost.get("kind") if isinstance(cost, Mapping) else None
        if usd is not None and kind == "reported":
            return evolve(self, reported_usd=round(self.reported_usd + usd, DECIMALS))
        if usd is not None and kind == "estimated":
            return evolve(self, estimated_usd=round(self.estimated_usd + usd, DECIMALS))
        models = self.unknown_models
        return evolve(
            self,
            unknown_calls=self.unknown_calls + 1,
            unknown_models=models if model in models else (*models, model),
        )

    @property
    def usd(self) -> float:
        """What is known of the cost."""
        return round(self.reported_usd + self.estimated_usd, DECIMALS)

    def usage(self) -> dict[str, int]:
        """The tokens as they go over the wire (runs.md R201)."""
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cacheReadInputTokens": self.cache_read_tokens,
            "cacheCreationInputTokens": self.cache_creation_tokens,
            "unmeasuredCalls": self.unmeasured_calls,
        }

    def cost(self) -> dict[str, JSONValue]:
        """The dollars as they go over the wire, and how many calls nobody can price."""
        return {
            "usd": self.usd,
            "reportedUsd": self.reported_usd,
            "estimatedUsd": self.estimated_usd,
            "unknownCalls": self.unknown_calls,
            "unknownModels": list(self.unknown_models),
        }

    def figures(self) -> dict[str, JSONValue]:
        """`usage` and `cost` for an event; nothing where no engine was called."""
        return {"usage": {**self.usage()}, "cost": self.cost()} if self.calls else {}


NOTHING: Final = Spent()


@dataclass(frozen=True, slots=True)
class Purse:
    """What was spent at one place, and on which attempt or round of it."""

    mark: tuple[int, ...]
    spent: Spent = NOTHING


Purses = Mapping[Path, Purse]


def is_reported(usage: Mapping[str, Any]) -> bool:
    """Whether a call said what it used."""
    return usage.get("kind", "reported") == "reported" and (
        number_of(usage.get("inputTokens")) is not None
        or number_of(usage.get("outputTokens")) is not None
    )


def paid(purses: Purses, path: Path, mark: tuple[int, ...], call: Mapping[str, Any]) -> Purses:
    """The purses after a call under this place; another attempt begins with an empty one."""
    purse = purses.get(path)
    before = NOTHING if purse is None or purse.mark != mark else purse.spent
    return {**purses, path: Purse(mark, before.plus(call))}


def mark_at(
    scopes: Mapping[Path, Scope], loops: Mapping[Path, LoopState], path: Path
) -> tuple[int, ...] | None:
    """Which attempt of the node, or round of the loop, is at this path; None where is neither."""
    loop = loops.get(path)
    if loop is not None:
        return loop.invocation, loop.iteration
    scope = scopes.get(path[:-1])
    node = None if scope is None else scope.nodes.get(path[-1])
    return None if scope is None or node is None else (scope.invocation, node.attempt)


def kept(purses: Purses, scopes: Mapping[Path, Scope], loops: Mapping[Path, LoopState]) -> Purses:
    """The purses a new session goes on with: what starts over there begins with an empty one."""
    return {path: purse for path, purse in purses.items() if _goes_on(scopes, loops, path)}


def _goes_on(scopes: Mapping[Path, Scope], loops: Mapping[Path, LoopState], path: Path) -> bool:
    loop = loops.get(path)
    if loop is not None:
        return not loop.anew
    scope = scopes.get(path[:-1])
    node = None if scope is None else scope.nodes.get(path[-1])
    return node is not None and node.status != "idle"


def at(purses: Purses, path: Path, mark: tuple[int, ...]) -> Spent:
    """What this attempt or round of a place spent."""
    purse = purses.get(path)
    return NOTHING if purse is None or purse.mark != mark else purse.spent
