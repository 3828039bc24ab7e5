"""What a workflow is given, read and checked: its roles, its stages, its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import JSONValue
from runs.kernel.seats import TeamSeat, seat_identity
from runs.shapes.person import Person
from runs.shapes.stage import Stage

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m|h)")
Seats = tuple[TeamSeat, ...]
Role = TeamSeat | Seats | Person


def read_roles(given: Any) -> dict[str, Role]:
    """Every role by its name (W5, W7)."""
    if not isinstance(given, Mapping):
        raise DeclarationError("roles is a mapping of names to seats, panels and persons.")
    read: dict[str, Role] = {}
    for name, role in given.items():
        if not isinstance(name, str) or not name.strip():
            raise DeclarationError("a role needs a name.")
        if isinstance(role, list | tuple):
            if not role:
                raise DeclarationError(f"role {name!r} is a panel without seats.")
            read[name] = tuple(_read_seat(one) for one in role)
        else:
            read[name] = role if isinstance(role, Person) else _read_seat(role)
    return read


def _read_seat(given: Any) -> TeamSeat:
    identity = seat_identity(given)
    effort = getattr(given, "effort", None)
    return TeamSeat(engine=given.engine, identity=identity, effort=effort)


def role_json(role: Role) -> JSONValue:
    """What a workflow's identity holds of a role (W193)."""
    if isinstance(role, Person):
        return role.to_json()
    if isinstance(role, TeamSeat):
        return {**role.identity.to_json(), "effort": role.effort}
    return [role_json(seat) for seat in role]


def read_stages(name: str, given: Any) -> tuple[Stage, ...]:
    """The stages, at least one and no two of one name (W3)."""
    stages = tuple(given)
    if not stages or not all(isinstance(one, Stage) for one in stages):
        raise DeclarationError(f"workflow {name!r} has a list of stages, each made by stage().")
    names = [one.name for one in stages]
    if doubled := sorted({one for one in names if names.count(one) > 1}):
        raise DeclarationError(f"workflow {name!r} has two stages named {', '.join(doubled)}.")
    return stages


def read_timeout(options: Mapping[str, Any] | None) -> int | None:
    """`options.timeout` in milliseconds (W12)."""
    given = dict(options or {})
    if unknown := sorted(map(str, set(given) - {"timeout"})):
        raise DeclarationError(f"the options of a workflow take timeout, not {', '.join(unknown)}.")
    value = given.get("timeout")
    if value is None:
        return None
    found = _milliseconds(value)
    if found is None:
        raise DeclarationError(f'timeout is a duration such as "10m", not {value!r}.')
    return found


def _milliseconds(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value > 0 else None
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    found = float(match[1]) * _UNITS[match[2]]
    return int(found) if found > 0 and found == int(found) else None
