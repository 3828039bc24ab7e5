"""`@tool(...)`: an action that a step may take, and what it needs before it runs.

Nothing but the gateway (`ctx.call_tool`) runs a tool. Its effect decides who is asked first
(interactions.md section 5).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runs.kernel import masking
from runs.kernel.action_requests import fields_of, filled
from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import digest_hex
from runs.kernel.tool_errors import ToolRefused
from runs.shapes.tool_input import ToolInput

Effect = Literal["read", "internal-write", "external-write", "destructive"]
Policy = Literal["never", "policy", "always"]
Recovery = Literal["replay", "query", "none"]
Risk = Literal["low", "medium", "high"]

EFFECTS: Final = ("read", "internal-write", "external-write", "destructive")
POLICIES: Final = ("never", "policy", "always")
RECOVERIES: Final = ("replay", "query", "none")
RISKS: Final = ("low", "medium", "high")
KEYED: Final = frozenset({"external-write", "destructive"})
# Kinds of action that always have a gate (interactions.md I32).
GATED_CATEGORIES: Final = (
    "publish",
    "schedule",
    "send",
    "delete",
    "external-share",
    "paid-change",
)
EXPIRES_SECONDS: Final = 86_400
WINDOW_SECONDS: Final = 900
MAX_SECONDS: Final = 90 * 86_400
_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,59}")
_CATEGORY: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_CURRENCY: Final = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What a tool's function is told beside its input; of approvals it knows nothing (I75).

    Handed on to the other side, `idempotency_key` lets it tell a repeated call from a new one.
    """

    tool: str
    idempotency_key: str
    run_id: str
    path: tuple[str, ...]
    log: Callable[[str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool:
    """A registered tool. It cannot be called: `ctx.call_tool` is its only way in."""

    name: str
    fn: Callable[..., Any]
    input: ToolInput
    effect: Effect
    category: str
    policy: Policy
    recovery: Recovery
    risk: Risk
    summary: str
    version: int = 1
    sensitive: tuple[str, ...] = ()
    cost: int | Callable[[Any], int] | None = None
    currency: str | None = None
    permission: str = ""
    audience: Mapping[str, list[str]] = field(default_factory=dict)
    exclude_requester: bool = False
    expires_in_seconds: float = EXPIRES_SECONDS
    execution_window_seconds: float = WINDOW_SECONDS
    preflight: Callable[..., Any] | None = None
    query: Callable[..., Any] | None = None

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse: a call that passes by the gateway has nobody's yes (gates.md G207)."""
        text = f"{self.name} runs through ctx.call_tool({self.name!r}, ...) only."
        raise ToolRefused("approval_required", text)

    @property
    def is_gated(self) -> bool:
        return self.policy != "never"

    @property
    def is_keyed(self) -> bool:
        """Whether each of its calls has an idempotency key of the run (I32, I76)."""
        return self.effect in KEYED

    @property
    def digest(self) -> str:
        """What an approval is bound to: another digest is another tool (I72)."""
        told = {
            "name": self.name,
            "version": self.version,
            "input": self.input.schema,
            "effect": self.effect,
            "category": self.category,
        }
        return digest_hex(told)

    def facts(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is stored with a call of this input, and decides about it."""
        routing: dict[str, Any] = {
            "expiresInSeconds": self.expires_in_seconds,
            "onExpiry": "reject",
            "excludeRequester": self.exclude_requester,
        }
        if self.audience:
            routing["audience"] = dict(self.audience)
        return {
            "tool": self.name,
            "toolDigest": self.digest,
            "effect": self.effect,
            "category": self.category,
            "policy": self.policy,
            "recovery": self.recovery,
            "risk": self.risk,
            "summary": filled(self.summary, given),
            "sensitive": self.sensitive,
            "cost": self._cost_of(given),
            "currency": self.currency,
            "windowSeconds": self.execution_window_seconds,
            "routing": routing,
        }

    def _cost_of(self, given: Mapping[str, Any]) -> int | None:
        if not callable(self.cost):
            return self.cost
        found = self.cost(self.input.for_function(given))
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            text = f"the cost of {self.name} is no whole number of minor units."
            raise ToolRefused("invalid_input", text)
        return found

    def arguments(
        self, fn: Callable[..., Any], stored: Mapping[str, Any], call: ToolCall
    ) -> tuple[Any, ...]:
        """What one of the author's functions is called with: the input, and the call if it asks."""
        given = self.input.for_function(stored)
        return (given, call) if _takes_two(fn) else (given,)


def _takes_two(fn: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return False
    placed = [
        one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return len(placed) >= 2 or any(one.kind is one.VAR_POSITIONAL for one in parameters)


# --- the registry --------------------------------------------------------------------------------

_tools: dict[str, Tool] = {}


def registered(name: str) -> Tool | None:
    """The tool of this name in this process."""
    return _tools.get(name)


def register(made: Tool) -> Tool:
    """Make the tool known by its name; another function of the same name is refused."""
    known = _tools.get(made.name)
    if known is not None and _origin(known.fn) != _origin(made.fn):
        where = ".".join(_origin(known.fn))
        raise DeclarationError(f"the tool {made.name!r} is there already: {where}.")
    _tools[made.name] = made
    return made


def _origin(fn: Any) -> tuple[str, str]:
    return str(getattr(fn, "__module__", "")), str(getattr(fn, "__qualname__", repr(type(fn))))


def tool(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    input: Any = None,
    effect: Effect = "external-write",
    category: str = "",
    approval_policy: Policy | None = None,
    recovery: Recovery = "none",
    risk: Risk | None = None,
    summary: str = "",
    version: int = 1,
    sensitive: Sequence[str] = (),
    cost: int | Callable[[Any], int] | None = None,
    currency: str | None = None,
    permission: str = "",
    audience: Mapping[str, list[str]] | None = None,
    exclude_requester: bool | None = None,
    expires_in_seconds: float = EXPIRES_SECONDS,
    execution_window_seconds: float = WINDOW_SECONDS,
    preflight: Callable[..., Any] | None = None,
    query: Callable[..., Any] | None = None,
) -> Any:
    """Register a function as a tool; `fn(input)` or `fn(input, call)`, sync or async.

    `input` is a pydantic model or a JSON Schema. Without an `effect` a tool counts as
    `external-write`, and what writes outside or destroys is asked about every time unless
    `approval_policy` says "policy": then standing grants count (interactions.md I32, I34).
    `recovery` says how a call goes on whose worker stopped: "replay" where the other side drops a
    repeated key, "query" where `query(input, call)` tells the result, or None when it did not
    happen, "none" where a person has to look (I74).

    A tool with a gate has a `risk` and a `summary` that names its arguments, such as
    "Publish {draft_id} to {channel}" (I38). `sensitive` are JSON pointers into the input that only
    some may read. `cost` counts minor units of `currency`. `permission` is what whoever the run
    works for has to have. Raises DeclarationError.
    """
    if fn is None:
        options = {key: value for key, value in locals().items() if key != "fn"}
        return lambda found: tool(found, **options)
    label = name or str(getattr(fn, "__name__", ""))
    who = f"the tool {label!r}"
    declared = ToolInput.declared(who, input)
    known: tuple[tuple[str, Any, Sequence[Any]], ...] = (
        ("effect", effect, EFFECTS),
        ("recovery", recovery, RECOVERIES),
    )
    for part, value, choices in known:
        _need(value in choices, f"{part} of {who} is one of {', '.join(choices)}.")
    default: Policy = "always" if effect in KEYED else "never"
    policy = approval_policy or default
    _need(policy in POLICIES, f"approval_policy of {who} is one of {', '.join(POLICIES)}.")
    made = Tool(
        name=label,
        fn=fn,
        input=declared,
        effect=effect,
        category=category,
        policy=policy,
        recovery=recovery,
        risk=risk or "low",
        summary=summary or label,
        version=version,
        sensitive=tuple(sensitive),
        cost=cost,
        currency=currency,
        permission=permission,
        audience=dict(audience or {}),
        exclude_requester=risk == "high" if exclude_requester is None else exclude_requester,
        expires_in_seconds=expires_in_seconds,
        execution_window_seconds=execution_window_seconds,
        preflight=preflight,
        query=query,
    )
    _check(made, who, has_risk=risk is not None)
    return register(made)


def external_write(
    fn: Callable[..., Any] | None = None, *, grants: bool = False, **more: Any
) -> Any:
    """A tool that writes outside: gate and key come with it (I33). `grants` lets grants count."""
    return _fixed(
        fn, more, effect="external-write", approval_policy="policy" if grants else "always"
    )


def destructive(fn: Callable[..., Any] | None = None, **more: Any) -> Any:
    """A tool that destroys: asked about every time, with a key (I33)."""
    return _fixed(fn, more, effect="destructive", approval_policy="always")


def _fixed(fn: Callable[..., Any] | None, more: dict[str, Any], **fixed: Any) -> Any:
    odd = sorted(fixed.keys() & more.keys())
    if odd:
        raise DeclarationError(f"{odd[0]} of such a tool is fixed; declare it with tool() instead.")
    return tool(fn, **more, **fixed)


def _need(true: object, text: str) -> None:
    if not true:
        raise DeclarationError(text)


def _check(made: Tool, who: str, *, has_risk: bool) -> None:
    """Refuse what a person could not judge, or what could pass the gate by (I32, I38)."""
    _need(_NAME.fullmatch(made.name), f"{who} has a name of a to z, 0 to 9, _ . -, at most 60.")
    _need(callable(made.fn), f"{who} is a function.")
    _need(
        not made.category or _CATEGORY.fullmatch(made.category),
        f"category of {who} is a short name such as publish.",
    )
    _need(
        isinstance(made.version, int) and not isinstance(made.version, bool) and made.version > 0,
        f"version of {who} is a whole number from 1.",
    )
    _need(made.risk in RISKS, f"risk of {who} is one of {', '.join(RISKS)}.")
    fault = masking.fault({masking.KEY: list(made.sensitive)})
    _need(not fault, f"{fault} Look at {who}.")
    _check_gate(made, who, has_risk=has_risk)
    _check_cost(made, who)
    _need(
        (made.query is not None) == (made.recovery == "query"),
        f'query of {who} goes with recovery="query".',
    )
    for part, seconds in (
        ("expires_in_seconds", made.expires_in_seconds),
        ("execution_window_seconds", made.execution_window_seconds),
    ):
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        _need(
            is_number and 0 < seconds <= MAX_SECONDS,
            f"{part} of {who} is a number of seconds, at most 90 days.",
        )


def _check_gate(made: Tool, who: str, *, has_risk: bool) -> None:
    if not made.is_gated:
        for reason, holds in (
            ("it destroys", made.effect == "destructive"),
            (f"its category is {made.category}", made.category in GATED_CATEGORIES),
        ):
            _need(not holds, f"{who} cannot do without a gate: {reason}.")
        return
    _need(has_risk, f"{who} has a gate, so it says its risk: {', '.join(RISKS)}.")
    places = fields_of(made.summary)
    names = made.input.names
    _need(
        places or not names,
        f'summary of {who} names its arguments, such as "Publish {{{min(names, default="")}}}".',
    )
    _need(len(made.summary) <= 300, f"summary of {who} has at most 300 characters.")
    for place in places:
        _need(place.split(".")[0] in names, f"summary of {who} names {place!r}, which is no input.")
        _need(
            not any(_meet(place.split("."), pointer) for pointer in made.sensitive),
            f"summary of {who} shows {place!r}, which is sensitive.",
        )


def _meet(place: list[str], pointer: str) -> bool:
    """Whether the one stands in the other: then showing the place shows what is masked."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return all(part in ("*", name) for part, name in zip(parts, place, strict=False))


def _check_cost(made: Tool, who: str) -> None:
    if made.cost is None:
        _need(made.currency is None, f"{who} has a currency and no cost.")
        return
    is_count = isinstance(made.cost, int) and not isinstance(made.cost, bool) and made.cost >= 0
    _need(is_count or callable(made.cost), f"cost of {who} is a whole number of minor units.")
    _need(
        isinstance(made.currency, str) and _CURRENCY.fullmatch(made.currency),
        f"currency of {who} is three letters such as EUR.",
    )
