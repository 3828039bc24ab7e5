"""What the gate of a call goes by outside of the run's record, read in the turn that decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from runs.kernel.calls import Call, Surroundings
from runs.kernel.grants import Grant
from runs.kernel.jsonable import digest_hex
from runs.people.principals import Principal

if TYPE_CHECKING:
    from runs.record import Turn

# Who keeps grants; the gates register it. Without one there are none, and a call asks (I7).
Finder = Callable[[Call, str, str], Sequence[Grant]]
_finders: list[Finder] = []
Owner = Callable[[str], Principal]
_owners: list[Owner] = []
ANY: Final = "*"


def register_grants(find: Finder) -> None:
    """Ask `find(call, principal, conversation)` for the standing grants that may cover a call."""
    if find not in _finders:
        _finders.append(find)


def register_owner(find: Owner) -> None:
    """Ask `find(actor)` for the rights that somebody who started a run has now."""
    if find not in _owners:
        _owners.append(find)


def surroundings(turn: Turn, call: Call | None, permission: str) -> Surroundings:
    """Grants, rights and policy for this call as they are under the run's lock (I55, I72)."""
    run = turn.run
    if call is None:
        return Surroundings(principal=run.started_by, conversation=run.conversation)
    found = [grant for find in _finders for grant in find(call, run.started_by, run.conversation)]
    return Surroundings(
        grants=found,
        authorised=not permission or owner_of(run.started_by).has_perm(permission),
        always_permitted=standing_permitted(
            str(call.facts["category"]), str(call.facts["risk"]), str(call.facts["effect"])
        ),
        policy_version=policy_version(),
        principal=run.started_by,
        conversation=run.conversation,
    )


def owner_of(actor: str) -> Principal:
    """Whoever started a run, with the rights they have now; nobody has none."""
    for find in _owners:
        return find(actor)
    return Principal(actor=actor, surface="worker")


def standing_permitted(category: str, risk: str, effect: str) -> bool:
    """Whether a yes may hold for ever here: what destroys never gets one (I54).

    `OBVERSA_STANDING_GRANTS` lists pairs such as `publish:low` or `*:low`; it is empty by default.
    """
    if effect == "destructive":
        return False
    allowed = standing_policy()
    return any(
        kind in (ANY, category or "") and level in (ANY, risk)
        for kind, _, level in (rule.partition(":") for rule in allowed)
    )


def standing_policy() -> list[str]:
    """The rules under which `allow_always` is offered."""
    given: Any = getattr(settings, "OBVERSA_STANDING_GRANTS", ())
    return sorted(str(rule) for rule in given)


def policy_version() -> str:
    """Names the policy that a decision was offered under."""
    return digest_hex(standing_policy())[:12]
