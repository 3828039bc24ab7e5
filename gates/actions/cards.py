"""The approval of an action, in words: what exactly will run, and what each decision means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from gates.errors import AnswerRefused, GateError, PolicyChanged
from gates.evidence.masking import MASK
from gates.models import Request
from runs import actions as surroundings
from runs.kernel.actions import ACTION, ALLOW_ALWAYS, ALLOW_CONVERSATION, ALLOW_ONCE, ALLOWS, DENY
from runs.kernel.grants import MAX_DAYS
from runs.kernel.state import RunState
from runs.people.actors import actor_labels
from runs.plaintext import visible
from runs.report.action_words import DECISIONS

_LABELS: Final[Mapping[str, str]] = {
    ALLOW_ONCE: "Allow once",
    ALLOW_CONVERSATION: "Allow for this conversation",
    ALLOW_ALWAYS: "Always allow",
    DENY: "Deny",
}
_KEYS: Final[Mapping[str, str]] = {ALLOW_ONCE: "y", DENY: "n"}
_EFFECTS: Final[Mapping[str, str]] = {
    "read": "reads",
    "internal-write": "changes things here",
    "external-write": "changes things outside",
    "destructive": "destroys, and cannot be taken back",
}
_EXECUTIONS: Final[Mapping[str, str]] = {
    "reserved": "about to run",
    "started": "running",
    "succeeded": "it ran",
    "failed": "it ran and failed",
    "indeterminate": "it began, and nobody knows whether it happened",
}
_REFUSED: Final[Mapping[str, str]] = {
    "approval_expired": "nothing ran: its time was over",
    "approval_stale": "nothing ran: the tool or its input is not what was approved",
    "forbidden": "nothing ran: whoever the run works for may not do that any more",
}
# How many digits a currency has behind its point, where they are not two (ISO 4217).
_DIGITS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG"), 0),
    **dict.fromkeys(("RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One decision that may be taken, and the literal rule that it makes."""

    value: str
    label: str
    rule: str
    key: str = ""

    @property
    def verdict(self) -> str:
        return "no" if self.value == DENY else "yes"


@dataclass(frozen=True, kw_only=True)
class ActionCard:
    """What exactly will run; `masked_count` values of its input are not shown to this reader."""

    tool: str
    risk: str
    effect: str
    category: str
    cost: str
    key: str
    expires_at: datetime | None
    masked_count: int
    decisions: list[Decision] = field(default_factory=list)
    came_to: str = ""


def is_action(row: Request) -> bool:
    """Whether the question asks for the yes to one call of a tool."""
    return bool(row.routing.get("purpose") == ACTION)


def card_of(row: Request, shown: Request, state: RunState) -> ActionCard | None:
    """The card of an action for one reader; `shown` is the row as they may read it."""
    if not is_action(row) or not isinstance(row.input, Mapping):
        return None
    starter = actor_labels([row.run.started_by])[row.run.started_by]
    return ActionCard(
        tool=visible(str(row.input.get("tool", ""))),
        risk=visible(str(row.input.get("risk", ""))),
        effect=_EFFECTS.get(str(row.routing.get("effect")), ""),
        category=visible(str(row.routing.get("category") or "")),
        cost=cost_words(row.input.get("cost")),
        key=visible(str(row.input.get("idempotencyKey", ""))),
        expires_at=row.expires_at if row.is_open else None,
        masked_count=_masked(shown.input),
        decisions=[
            Decision(
                value=value,
                label=_LABELS[value],
                rule=rule_of(row, value, starter),
                key=_KEYS.get(value, ""),
            )
            for value in decisions_of(row)
        ],
        came_to=_came_to(row, state),
    )


def decisions_of(row: Request) -> list[str]:
    """What may be decided, as the question itself says it."""
    properties = row.response_schema.get("properties")
    declared = properties.get("decision") if isinstance(properties, Mapping) else None
    listed = declared.get("enum") if isinstance(declared, Mapping) else None
    return [one for one in listed if one in _LABELS] if isinstance(listed, list | tuple) else []


def rule_of(row: Request, decision: str, starter: str) -> str:
    """What a decision leads to, in full: the literal rule that it makes."""
    tool = visible(str(row.input.get("tool", "")))
    if decision == DENY:
        return (
            "Nothing runs. The step is told no, and this run does not ask for the same call again."
        )
    if decision == ALLOW_ONCE:
        return "This call runs once, exactly as shown. It allows nothing else."
    if decision == ALLOW_CONVERSATION:
        name = visible(str(row.routing.get("conversation", "")))
        where = f"in the conversation {name}, in runs that {visible(starter)} started,"
    else:
        where = f"in every run that {visible(starter)} starts"
    return (
        f"This call runs now. For {MAX_DAYS} days, or until somebody revokes it, every later call "
        f"of {tool} {where} runs without asking, whatever its input."
    )


def decision_words(response: Any) -> str:
    """What was decided, in a few words; nothing for another kind of answer."""
    decision = response.get("decision") if isinstance(response, Mapping) else None
    return DECISIONS.get(decision, "") if isinstance(decision, str) else ""


def verdict_of(response: Any) -> str:
    """Yes or no, where the answer is about an action."""
    decision = response.get("decision") if isinstance(response, Mapping) else None
    if not isinstance(decision, str) or decision not in DECISIONS:
        return ""
    return "yes" if decision in ALLOWS else "no"


def cost_words(cost: Any) -> str:
    """An amount such as `2.50 EUR`; nothing for no cost."""
    if not isinstance(cost, Mapping) or not isinstance(cost.get("minorUnits"), int):
        return ""
    currency = str(cost.get("currency", ""))
    digits = _DIGITS.get(currency, 2)
    units = cost["minorUnits"]
    whole, part = divmod(units, 10**digits)
    amount = f"{whole:,}.{part:0{digits}d}" if digits else f"{whole:,}"
    return f"{amount} {currency}"


def _masked(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_masked(one) for one in value.values())
    if isinstance(value, list | tuple):
        return sum(_masked(one) for one in value)
    return int(value == MASK)


def _came_to(row: Request, state: RunState) -> str:
    """What became of the call, from the record."""
    action = state.actions.get(str(row.routing.get("key", "")))
    if action is None:
        return ""
    ask = next((one for one in action.asks if one.request_id == row.request_id), None)
    if ask is not None and ask.refused:
        return _REFUSED.get(ask.refused, "nothing ran")
    if ask is None or not ask.is_allowed:
        return ""
    words = _EXECUTIONS.get(action.execution, "it has not run yet")
    reason = visible(str(action.error.get("message", "")))[:300] if action.error else ""
    return f"{words}: {reason}" if reason else words


def subject_of(row: Request) -> Any:
    """What the call is about: its own input, beside which the card says the rest."""
    return row.input.get("input") if isinstance(row.input, Mapping) else row.input


# --- what keeps a decision from being taken ------------------------------------------------------


def refusal(row: Request, response: Any) -> GateError | None:
    """A decision that the policy has ceased to permit (interactions.md I44, I54)."""
    if not is_action(row) or not isinstance(response, Mapping):
        return None
    if response.get("decision") != ALLOW_ALWAYS or ALLOW_ALWAYS not in decisions_of(row):
        return None
    facts = (str(row.routing.get(name) or "") for name in ("category", "risk", "effect"))
    if surroundings.standing_permitted(*facts):
        return None
    return PolicyChanged(
        "Allowing this for ever is not permitted any more. Read the question again."
    )


def refusal_in_emergency(row: Request, response: Any) -> GateError | None:
    """Whoever was not asked allows an action this once, or not at all: no standing grant."""
    decision = response.get("decision") if isinstance(response, Mapping) else None
    if not is_action(row) or decision in (ALLOW_ONCE, DENY):
        return None
    return AnswerRefused([("decision", "In an emergency an action is allowed once, or denied.")])


# --- over the wire -------------------------------------------------------------------------------


def wire(row: Request) -> dict[str, Any] | None:
    """What a program is told of an action beside its question; None for any other question."""
    if not is_action(row) or not isinstance(row.input, Mapping):
        return None
    routing = row.routing
    return {
        "tool": row.input.get("tool"),
        "toolDigest": routing.get("toolDigest"),
        "effect": routing.get("effect"),
        "category": routing.get("category"),
        "policy": routing.get("policy"),
        "risk": row.input.get("risk"),
        "summary": routing.get("summary"),
        "cost": row.input.get("cost"),
        "inputDigest": routing.get("inputDigest"),
        "idempotencyKey": row.input.get("idempotencyKey"),
        "conversation": routing.get("conversation") or None,
        "decisions": [
            {
                "decision": value,
                "label": _LABELS[value],
                "rule": rule_of(row, value, row.run.started_by),
            }
            for value in decisions_of(row)
        ],
    }
