"""One stage of a workflow: who does it, what it writes, who reads it (workflows.md section 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from runs.kernel.conditions import to_condition
from runs.kernel.errors import DeclarationError
from runs.kernel.jsonable import JSONValue
from runs.kernel.sources import code_digest
from runs.shapes.brief import workspace_paths
from runs.shapes.job import Job

KINDS: Final = ("agent", "run", "panel", "input", "fn")
# Keys of the seeds whose work is not done here yet; a workflow that counts on one is refused.
NOT_YET: Final = {
    "synthesise": "merging the findings of a panel",
    "goal": "checking that the brief was met",
}
DEFAULT_REFINE: Final = 1
_TEXTS: Final = (
    "agent",
    "panel",
    "input",
    "effort",
    "desc",
    "gate",
    "reviewed_by",
    "sends_back_to",
)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What stage() was given, read and checked as far as one stage can be by itself."""

    name: str
    agent: str | None = None
    run: str | tuple[str, ...] | None = None
    panel: str | None = None
    input: str | None = None
    fn: Any = None
    effort: str | None = None
    writes: tuple[str, ...] = ()
    desc: str | None = None
    gate: str | None = None
    reviewed_by: str | None = None
    agree: int | None = None
    sends_back_to: str | None = None
    refine: int | None = None
    retry_safe: bool = False
    when: Any = None
    optional: bool = False
    needs: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def builds(self) -> int:
        """How often its work may be built in all (W67)."""
        return 1 + (DEFAULT_REFINE if self.refine is None else self.refine)

    def to_json(self) -> dict[str, JSONValue]:
        """Every declared key: another one is another workflow (W193, W194)."""
        wire: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value in (None, (), False):
                continue
            if item.name == "fn":
                value = _code(value)
            elif item.name == "when":
                value = dict(to_condition(value).shape)
            wire[item.name] = list(value) if isinstance(value, tuple) else value
        return wire


def _code(fn: Any) -> JSONValue:
    return fn.shape.to_json() if isinstance(fn, Job) else code_digest(fn)


def stage(name: str, **keys: Any) -> Stage:
    """A stage of a workflow; exactly one of `agent`, `run`, `panel`, `input`, `fn` says its kind.

    The other keys: `effort`, `writes`, `desc`, `gate`, `reviewed_by`, `agree`, `sends_back_to`,
    `refine` (a count), `retry_safe`, `when`, `optional`, `needs`. Raises DeclarationError, which is
    a TypeError, for what one stage cannot be.
    """
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError("a stage needs a name.")
    known = {item.name for item in fields(Stage)} - {"name"}
    for key, what in NOT_YET.items():
        if key in keys:
            raise DeclarationError(f"stage {name!r} asks for {key}: {what} is not possible yet.")
    if unknown := sorted(set(keys) - known):
        accepted = ", ".join(sorted(known))
        raise DeclarationError(
            f"stage {name!r} has unknown keys: {', '.join(unknown)}. It takes {accepted}."
        )
    given = {key: value for key, value in keys.items() if value is not None}
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise DeclarationError(
            f"stage {name!r} takes exactly one of {', '.join(KINDS)}; it has {found}."
        )
    where = f"stage {name!r}"
    checks: dict[str, Callable[[Any], Any]] = {
        **{key: partial(_text, where, key) for key in _TEXTS},
        "writes": partial(workspace_paths, f"writes of {where}"),
        "needs": partial(_names, where),
        "run": partial(_command, where),
        "fn": partial(_function, where),
        "agree": partial(_count, where, "agree", least=1),
        "refine": partial(_refine, where),
        "retry_safe": partial(_bool, where, "retry_safe"),
        "optional": partial(_bool, where, "optional"),
    }
    read = {key: checks[key](value) if key in checks else value for key, value in given.items()}
    made = Stage(name=name, **read)
    _fits(where, made)
    return made


def _fits(where: str, made: Stage) -> None:
    if made.kind == "agent" and not made.writes:
        raise DeclarationError(f"{where} is an agent's and does not say what it writes.")
    if made.kind != "agent":
        for key in ("effort", "reviewed_by"):
            if getattr(made, key) is not None:
                raise DeclarationError(f"{where} is no agent's; {key} is for an agent stage.")
    if made.kind in ("panel", "input") and made.writes:
        raise DeclarationError(f"{where} writes nothing: a {made.kind} stage only reads.")
    if made.agree is not None and made.kind != "panel" and made.reviewed_by is None:
        raise DeclarationError(f"{where} has no panel whose members could agree.")
    if made.reviewed_by is not None and made.sends_back_to is not None:
        raise DeclarationError(f"{where} takes reviewed_by or sends_back_to, not both.")


def _text(where: str, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DeclarationError(f"{key} of {where} is text that says something.")
    return value


def _bool(where: str, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise DeclarationError(f"{key} of {where} is no bool.")
    return value


def _count(where: str, key: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DeclarationError(f"{key} of {where} is no count of {least} or more.")
    return value


def _refine(where: str, value: Any) -> int:
    if not isinstance(value, int | float):
        raise DeclarationError(f"refine of {where} is a count; a judge is not possible yet.")
    return _count(where, "refine", value, least=0)


def _names(where: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise DeclarationError(f"needs of {where} is a list of stage names.")
    return names


def _command(where: str, value: Sequence[str] | str) -> str | tuple[str, ...]:
    parts = value.split() if isinstance(value, str) else value
    if not parts or not all(isinstance(part, str) for part in parts):
        raise DeclarationError(f"run of {where} is a command: text, or a list of its arguments.")
    return value if isinstance(value, str) else tuple(value)


def _function(where: str, value: Any) -> Any:
    if not isinstance(value, Job) and not callable(value):
        raise DeclarationError(f"fn of {where} is no function of ctx.")
    return value
