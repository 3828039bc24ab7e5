"""What a yes and a no lead to, in a sentence each."""

from __future__ import annotations

from typing import Final

from gates.actions import cards
from gates.pages.details import GateDetail
from gates.reviews import rich
from runs.kernel.interactions import REVIEW
from runs.plaintext import visible

# What a question is for whose answer is a yes or a no.
_DECISIONS: Final = frozenset({"approval", REVIEW})


def on_yes(detail: GateDetail) -> str:
    """What follows when the answer is yes; nothing for a question that decides nothing."""
    if not _decides(detail):
        return ""
    if detail.row.routing.get("again"):
        return "the work is done, and the run goes on"
    names = detail.outcomes.on_yes
    return f"the run goes on with {listed(names)}" if names else "the run goes on"


def on_no(detail: GateDetail) -> str:
    """What follows when the answer is no."""
    outcomes = detail.outcomes
    if not _decides(detail):
        return ""
    if detail.row.routing.get("again"):
        return "another round with what you said, while there is one left"
    if not outcomes.on_no:
        return "the step fails with your note"
    if outcomes.rounds_left == 0:
        return "the step fails with your note; no round is left"
    return f"back to {outcomes.on_no} with your note"


def _decides(detail: GateDetail) -> bool:
    return detail.mode != "kept" and detail.row.routing.get("purpose") in _DECISIONS


def listed(names: list[str]) -> str:
    """Some names in a row, and how many more there are."""
    shown = [visible(name) for name in names[:4]]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(shown) + more


def decision(detail: GateDetail) -> str:
    """The answer that was given, in a word or two."""
    given, target = detail.given, detail.outcomes.on_no
    assert given is not None
    if cards.is_action(detail.row):
        return cards.decision_words(given.response).capitalize()
    if given.verdict == "no" and target:
        return f"Sent back to {visible(target)}"
    if given.verdict == "no" and rich.verdict_of(given.response):
        return "Changes requested"
    return {"yes": "Approved", "no": "Refused"}.get(
        given.verdict, f"Answered: {visible(given.decision)}"
    )


def resumed(detail: GateDetail) -> str:
    """Which way the run went with this answer."""
    given, outcomes = detail.given, detail.outcomes
    assert given is not None
    if given.verdict == "no" and outcomes.on_no:
        return f"The run resumed with {visible(outcomes.on_no)}."
    if given.verdict == "yes" and outcomes.on_yes:
        return f"The run resumed with {listed(outcomes.on_yes)}."
    return "The run resumed."
