"""Conditions: what must hold before a node runs, a step passes, or a loop begins or ends.

A condition is plain data where it can be (`passed`, `failed` and what is built of them) and code
where the author wrote code. Data is decided by the kernel; code is run by a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.jsonable import JSONValue
from runs.kernel.outcomes import Outcome
from runs.kernel.sources import code_digest

Needs = Mapping[str, Outcome]
Data = Mapping[str, Any]
_GROUPS: Final = {"all": "all_of", "any": "any_of"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionResult:
    """Whether it holds, why, and what the check printed (runs.md R82)."""

    met: bool
    reason: str = ""
    confidence: float | None = None
    output: str | None = None
    command: Mapping[str, JSONValue] | None = None

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"met": self.met, "reason": self.reason}
        for name in ("confidence", "output", "command"):
            if (value := getattr(self, name)) is not None:
                wire[name] = value
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> ConditionResult:
        return cls(
            met=wire["met"],
            reason=wire.get("reason", ""),
            confidence=wire.get("confidence"),
            output=wire.get("output"),
            command=wire.get("command"),
        )


@dataclass(frozen=True, slots=True)
class Condition:
    """`shape` is its data; `check` is there when the author's code must be asked."""

    shape: Data
    check: Callable[[Any, Outcome | None], Any] | None = None
    parts: tuple[Condition, ...] = ()

    def __call__(self, ctx: Any, last: Outcome | None = None) -> ConditionResult:
        """Evaluate inside a worker; a data condition reads `last` and the needs of `ctx`."""
        if self.check is not None:
            call = getattr(ctx, "call", _plainly)
            return as_result(call(self.check, ctx, last), label=str(self.shape["label"]))
        match self.shape["op"]:
            case "all" | "any" as op:
                return _combine(op, (part(ctx, last) for part in self.parts))
            case "not":
                return _invert(self.parts[0](ctx, last))
            case _:
                return evaluate(self.shape, getattr(ctx, "needs", None) or {}, last)


def _plainly(check: Callable[..., Any], *given: Any) -> Any:
    return check(*given)


ConditionInput = Condition | Callable[[Any, Outcome | None], Any] | list[Any]


def is_data(shape: Data) -> bool:
    """True when the kernel can decide it without the author's code."""
    return shape["op"] != "code" and all(is_data(part) for part in shape.get("parts", ()))


def evaluate(shape: Data, needs: Needs, last: Outcome | None = None) -> ConditionResult:
    """Decide a data condition from the needs and the last body outcome (runs.md R85-R91)."""
    match shape["op"]:
        case "always":
            return ConditionResult(met=True, reason="always")
        case "never":
            return ConditionResult(met=False, reason="never")
        case "passed" | "failed" as op:
            return _ended(op, str(shape["name"]), needs)
        case "body_passed":
            return _body_passed(last)
        case "min_confidence":
            return _confident(last, shape["threshold"])
        case "not":
            return _invert(evaluate(shape["parts"][0], needs, last))
        case "all" | "any" as op:
            return _combine(op, (evaluate(part, needs, last) for part in shape["parts"]))
        case "quorum":
            return tally(shape["k"], [_vote(part, needs, last) for part in shape["parts"]])
        case op:
            raise LoopError("VALIDATION", f"the condition {op!r} needs a worker.")


def _ended(op: str, name: str, needs: Needs) -> ConditionResult:
    if name not in needs:
        raise LoopError("VALIDATION", f"{op}({name!r}) reads a node that is not a need here.")
    status = needs[name].status
    wanted = ("pass",) if op == "passed" else ("fail", "exhausted")
    return ConditionResult(met=status in wanted, reason=f"{name} ended {status}")


def _body_passed(last: Outcome | None) -> ConditionResult:
    status = "nothing" if last is None else last.status
    met = status == "pass"
    return ConditionResult(
        met=met,
        reason="the body passed" if met else f"the body ended {status}",
        confidence=None if last is None else last.confidence,
    )


def _confident(last: Outcome | None, threshold: float) -> ConditionResult:
    found = (last.confidence if last is not None else None) or 0.0
    reason = f"confidence {found:g}, {threshold:g} needed"
    return ConditionResult(met=found >= threshold, reason=reason, confidence=found)


Vote = ConditionResult | Exception


def _vote(shape: Data, needs: Needs, last: Outcome | None) -> Vote:
    try:
        return evaluate(shape, needs, last)
    except LoopError as error:
        return error


def tally(k: int, votes: Sequence[Vote]) -> ConditionResult:
    """Met when at least `k` votes hold; a vote that raised is a no (runs.md R91)."""
    given = [vote for vote in votes if isinstance(vote, ConditionResult)]
    yes = [vote for vote in given if vote.met]
    reason = f"{len(yes)} of {len(votes)} hold, {k} needed"
    if len(yes) >= k:
        sure = [vote.confidence for vote in yes if vote.confidence is not None]
        mean = sum(sure) / len(sure) if sure else None
        return ConditionResult(met=True, reason=reason, confidence=mean)
    against = [vote.reason for vote in given if not vote.met and vote.reason]
    against += [str(vote) for vote in votes if isinstance(vote, Exception)]
    output = next((v.output for v in given if not v.met and v.output is not None), None)
    return ConditionResult(met=False, reason=": ".join([reason, "; ".join(against)]), output=output)


def _combine(op: Literal["all", "any"] | str, results: Any) -> ConditionResult:
    """All stops at the first unmet, any at the first met (runs.md R85)."""
    seen: list[ConditionResult] = []
    for result in results:
        seen.append(result)
        if result.met == (op == "any"):
            break
    if not seen:
        return ConditionResult(met=op == "all", reason="nothing to check")
    decider = seen[-1]
    if decider.met == (op == "any"):
        return decider
    reason = "; ".join(result.reason for result in seen if result.reason)
    if op == "all":
        return ConditionResult(met=True, reason=reason, confidence=decider.confidence)
    output = next((result.output for result in seen if result.output is not None), None)
    return ConditionResult(met=False, reason=reason, output=output)


def _invert(result: ConditionResult) -> ConditionResult:
    return ConditionResult(
        met=not result.met,
        reason=f"not ({result.reason})",
        confidence=result.confidence,
        output=result.output,
    )


def as_result(value: Any, *, label: str) -> ConditionResult:
    """A predicate's return as a result (runs.md R84)."""
    if isinstance(value, Mapping) and "met" in value:
        value = ConditionResult.from_json(value)
    if isinstance(value, ConditionResult):
        if not isinstance(value.met, bool):
            text = f"the condition {label!r} returned a met that is no bool."
            raise LoopError("VALIDATION", text, phase="body")
        return value
    return ConditionResult(met=bool(value), reason=label)


def _named(op: str, name: str) -> Condition:
    if not isinstance(name, str) or not name:
        raise DeclarationError(f"{op}() takes the name of a node.")
    return Condition({"op": op, "name": name, "label": f"{op}({name})"})


def passed(name: str) -> Condition:
    """Met when the named need passed; a skipped one counts as passed (runs.md R88)."""
    return _named("passed", name)


def failed(name: str) -> Condition:
    """Met when the named need failed or ran out of rounds (runs.md R89)."""
    return _named("failed", name)


def _group_label(op: str, parts: tuple[Condition, ...]) -> str:
    inner = (label for part in parts for label in labels_of(part.shape))
    return f"{_GROUPS[op]}({', '.join(inner)})"


def labels_of(shape: Data) -> list[str]:
    """One label per condition; what must all hold is listed one by one (runs.md R105)."""
    if shape["op"] == "all":
        return [label for part in shape["parts"] for label in labels_of(part)]
    return [str(shape.get("label") or "check")]


def _group(op: str, inputs: tuple[Any, ...]) -> Condition:
    parts = tuple(to_condition(item) for item in inputs)
    shape = {
        "op": op,
        "parts": [dict(part.shape) for part in parts],
        "label": _group_label(op, parts),
    }
    return Condition(shape, parts=parts)


def all_of(*inputs: Any) -> Condition:
    """Met when every input is; stops at the first that is not."""
    return _group("all", inputs)


def any_of(*inputs: Any) -> Condition:
    """Met when one input is; stops there."""
    return _group("any", inputs)


def not_(item: Any) -> Condition:
    """Met when the input is not."""
    part = to_condition(item)
    label = f"not {' and '.join(labels_of(part.shape))}"
    return Condition({"op": "not", "parts": [dict(part.shape)], "label": label}, parts=(part,))


always: Final = Condition({"op": "always", "label": "always"})
never: Final = Condition({"op": "never", "label": "never"})


def predicate(fn: Callable[[Any, Outcome | None], Any], reason: str = "predicate") -> Condition:
    """The author's own check `(ctx, last) -> bool`, run by a worker."""
    return Condition({"op": "code", "label": reason, "code": code_digest(fn)}, check=fn)


def to_condition(item: Any, combine: Literal["all", "any"] = "all") -> Condition:
    """A condition, a bare predicate or a (nested) list of them as one condition (R83)."""
    if isinstance(item, Condition):
        return item
    if isinstance(item, list | tuple):
        return all_of(*item) if combine == "all" else any_of(*item)
    if callable(item):
        name = getattr(item, "__name__", "")
        return predicate(item, name if name.isidentifier() else "check")
    raise DeclarationError(f"{item!r} is no condition: give a condition, a function or a list.")


def describe_conditions(item: Any) -> list[str]:
    """One label per condition of the input, in order (runs.md R105)."""
    return [] if item is None else labels_of(to_condition(item).shape)


def watches_workspace(shape: Data) -> bool:
    """Whether it compares the workspace with what it was when the loop was entered (R77)."""
    return bool(shape.get("watches")) or any(map(watches_workspace, shape.get("parts", ())))


def required_names(shape: Data) -> list[tuple[str, str]]:
    """The (op, name) pairs a `when` surely needs: direct, listed or in all_of (runs.md R108)."""
    if shape["op"] in ("passed", "failed"):
        return [(shape["op"], shape["name"])]
    if shape["op"] == "all":
        return [pair for part in shape["parts"] for pair in required_names(part)]
    return []
