"""Who may answer a question, and how: what its asker says, checked in one place.

A workflow says it in keywords of `approval()` and `ctx.ask_questions()`, a program in fields of
`POST /requests`. What is checked here goes into the record as fields of `callback-routed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypedDict

from runs.kernel.tallies import MAX_NEEDED
from runs.shapes.routers import NAME as ROUTER
from runs.shapes.routers import HttpRouter, router_name

PARTS: Final = ("users", "groups", "permissions", "keys", "routers")
RISKS: Final = ("low", "medium", "high")
MAX_PRIORITY: Final = 1_000


class Answering(TypedDict, total=False):
    """The keywords about who may answer a question, and how.

    `audience` has lists of names under `users`, `groups`, `permissions`, `keys` and `routers`;
    without it everybody who may see the workflow may answer. `router` is a service that the
    question is sent to, and that the audience names (docs/routers.md). `needed` people have to
    answer, each of another team of the audience with `one_per_team`. `exclude_requester` keeps
    whoever started the run or asked from answering; without it that is so for a `risk` of "high".
    With `on_answer="hold"` the run waits after the answer until somebody resumes it.
    """

    audience: Mapping[str, list[str]] | None
    priority: int
    on_answer: Literal["resume", "hold"]
    needed: int
    one_per_team: bool
    exclude_requester: bool | None
    risk: Literal["low", "medium", "high"] | None
    router: str | HttpRouter | None


class RoutingRefused(ValueError):
    """It cannot be so: `name` is the option as it was written, `rule` what it has to be."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name} {rule}")
        self.name = name
        self.rule = rule


def routing_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `callback-routed` that these keywords make; raises RoutingRefused."""
    known = {_python(wire): wire for wire in _CHECKS}
    for name in given:
        if name not in known:
            raise RoutingRefused(name, "is nothing that a question has.")
    try:
        return wire_routing({wire: given[name] for name, wire in known.items() if name in given})
    except RoutingRefused as refused:
        raise RoutingRefused(_python(refused.name), refused.rule) from None


def wire_routing(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same for fields as they are written on the wire; others than its own are left alone."""
    routing: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        value = given.get(name)
        if value is not None:
            checked = check(name, value)
            if checked is not None:
                routing[name] = checked
    _need_router(routing)
    return _quorum(routing)


def _need_router(routing: Mapping[str, Any]) -> None:
    """Who may answer holds for services too: the audience has to name the one that is asked."""
    name = router_name(routing)
    if name and name not in routing.get("audience", {}).get("routers", ()):
        raise RoutingRefused("router", f"is {name!r}, which the audience has to name: routers.")
    if name and routing.get("needed", 1) > 1:
        raise RoutingRefused("router", "is no person, and several people have to answer.")


def need_people(routing: Mapping[str, Any], name: str) -> None:
    """Raise RoutingRefused for an audience that never could give the answers that are needed.

    `name` is `audience`, or `escalateTo`, which may be a list of audiences.
    """
    needed = routing.get("needed", 1)
    given = routing.get(name)
    for audience in given if isinstance(given, list | tuple) else [given or {}]:
        if needed > 1:
            _need(name, audience, needed, one_per_team=bool(routing.get("onePerTeam")))


def _need(name: str, audience: Mapping[str, list[str]], needed: int, *, one_per_team: bool) -> None:
    if one_per_team:
        if name == "escalateTo" and not audience:
            return
        if any(names for part, names in audience.items() if part != "groups"):
            raise RoutingRefused(name, "names groups and nobody else, with one person per team.")
        if len(set(audience.get("groups", ()))) < needed:
            raise RoutingRefused(name, f"has fewer teams than the {needed} that have to answer.")
        return
    is_counted = audience and not (audience.get("groups") or audience.get("permissions"))
    if is_counted and len({who for names in audience.values() for who in names}) < needed:
        raise RoutingRefused(name, f"names fewer than the {needed} who have to answer.")


def _quorum(routing: dict[str, Any]) -> dict[str, Any]:
    """Without a number, each team of the audience has to answer."""
    if not routing.get("onePerTeam"):
        routing.pop("onePerTeam", None)
    elif "needed" not in routing:
        teams = set(routing.get("audience", {}).get("groups", ()))
        if len(teams) < 2:
            raise RoutingRefused("onePerTeam", "goes with an audience of several groups.")
        routing["needed"] = min(len(teams), MAX_NEEDED)
    if routing.get("needed") == 1:
        del routing["needed"]
        routing.pop("onePerTeam", None)
    need_people(routing, "audience")
    return routing


# --- one check for each option, by its name on the wire ---------------------------------------


def _audience(name: str, given: Any) -> dict[str, list[str]] | None:
    if not isinstance(given, Mapping) or not all(_is_names(part) for part in given.values()):
        raise RoutingRefused(name, "has lists of names.")
    odd = next((part for part in given if part not in PARTS), None)
    if odd is not None:
        raise RoutingRefused(name, f"has {odd!r}; it takes {', '.join(PARTS)}.")
    return {part: list(names) for part, names in given.items()} or None


def _is_names(given: Any) -> bool:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        return False
    return all(isinstance(name, str) and name for name in given)


def _priority(name: str, given: Any) -> int | None:
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if not is_whole or abs(given) > MAX_PRIORITY:
        raise RoutingRefused(name, f"is a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}.")
    return given or None


def _needed(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= MAX_NEEDED:
        raise RoutingRefused(name, f"is a number of people from 1 to {MAX_NEEDED}.")
    return given


def _on_answer(name: str, given: Any) -> str | None:
    if given not in ("resume", "hold"):
        raise RoutingRefused(name, 'is "resume" or "hold".')
    return None if given == "resume" else "hold"


def _risk(name: str, given: Any) -> str:
    if given not in RISKS:
        raise RoutingRefused(name, f"is one of {', '.join(RISKS)}.")
    return str(given)


def _flag(name: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise RoutingRefused(name, "is true or false.")
    return given


def _router(name: str, given: Any) -> str | dict[str, str]:
    if isinstance(given, HttpRouter):
        return given.to_json()
    if not isinstance(given, str) or not ROUTER.fullmatch(given):
        raise RoutingRefused(name, "is the name of a router.")
    return given


_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "audience": _audience,
    "priority": _priority,
    "onAnswer": _on_answer,
    "needed": _needed,
    "onePerTeam": _flag,
    "excludeRequester": _flag,
    "risk": _risk,
    "router": _router,
}
# What a program may say of its question: it has no step that an answer could hold back.
FIELDS: Final = frozenset(_CHECKS) - {"onAnswer"}


def _python(wire: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in wire)
