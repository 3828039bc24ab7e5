"""`publish(job, title=...)`: how an author offers a workflow. Loads no Django."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from runs.drivers.budget import Budget
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import LeafShape, LoopShape, Shape, shape_identity
from runs.kernel.jsonable import canonical_json, digest_hex
from runs.kernel.slots import REVIEW
from runs.shapes.job import Job, to_job

MAX_NAME: Final = 300
# A path is part of an index, which takes no longer text on PostgreSQL.
MAX_PATH_BYTES: Final = 2_000


MAX_RUNS: Final = 10_000
MAX_PRIORITY: Final = 100
_WHILE_WAITING: Final = ("keep", "give_back")


@dataclass(frozen=True, kw_only=True)
class Concurrency:
    """How many runs are under way at once, and whether one that waits gives its place back."""

    limit: int
    lends: bool = False


@dataclass(frozen=True, kw_only=True)
class Published:
    """One workflow as its author offered it."""

    name: str
    job: Job
    title: str
    description: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    audience: Mapping[str, Any] = field(default_factory=dict)
    starters: Mapping[str, Any] | None = None
    module: str = ""
    engine: Any = None
    engines: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget | None = None
    concurrency: Concurrency | None = None
    priority: int = 0

    @property
    def teams(self) -> list[str]:
        """The groups whose workflow it is: those who may start it."""
        told = self.audience if self.starters is None else self.starters
        return sorted({str(name) for name in told.get("groups", ())})

    @cached_property
    def identity(self) -> str:
        return shape_identity(self.job.shape)

    @cached_property
    def digest(self) -> str:
        return digest_hex(self.job.shape.to_json())


_offered: dict[str, Published] = {}


def publish(
    job: Any,
    *,
    title: str,
    description: str = "",
    params: Any = None,
    audience: Mapping[str, Any] | None = None,
    starters: Mapping[str, Any] | None = None,
    name: str | None = None,
    engine: Any = None,
    engines: Mapping[str, Any] | None = None,
    budget: int | Mapping[str, Any] | None = None,
    concurrency: int | Mapping[str, Any] | None = None,
    priority: int = 0,
) -> Any:
    """Offer the job under its own name (or `name`); returns the job. The last of a name counts.

    `params` is a JSON Schema or a pydantic model. `audience` says who may see, start and answer;
    without it every signed-in person may. `starters` narrows who may start it. `engines` holds
    engine instances by name, `engine` is the one (or its name) for steps that name none; both come
    before those of the deployment. `budget` caps the tokens of each run, as in run().
    `concurrency` is how many of its runs are under way at once: a number, or
    `{"limit": 2, "while_waiting": "give_back"}` for runs that keep no place while they wait.
    `priority` (-100 to 100) is that of its runs, unless one is started with another.
    """
    made = to_job(job)
    shape = made.shape
    wanted = name or (shape.label if isinstance(shape, LeafShape) else shape.name)
    if not wanted or "/" in wanted or len(wanted) > 200:
        raise DeclarationError(f"{wanted!r} is no name for a workflow: 1 to 200 characters, no /.")
    if not isinstance(title, str) or not 0 < len(title) <= MAX_NAME:
        raise DeclarationError(f"The title of {wanted} has 1 to {MAX_NAME} characters.")
    for told in (wanted, title, description, *_texts(shape, ())):
        if "\0" in told:
            raise DeclarationError(f"{told!r} in {wanted} holds U+0000, which no database keeps.")
    _offered[wanted] = Published(
        name=wanted,
        job=made,
        title=title,
        description=description,
        params=_schema(params),
        audience=audience or {},
        starters=starters,
        module=_loading[-1] if _loading else "",
        engine=engine,
        engines=dict(engines or {}),
        budget=_budget(wanted, budget),
        concurrency=_concurrency(wanted, concurrency),
        priority=_priority(wanted, priority),
    )
    return job


def _budget(name: str, given: Any) -> Budget | None:
    try:
        return Budget.of(given)
    except ValueError as error:
        raise DeclarationError(f"{name}: {error}") from error


def _concurrency(name: str, given: Any) -> Concurrency | None:
    if given is None:
        return None
    told = given if isinstance(given, Mapping) else {"limit": given}
    limit, waiting = told.get("limit"), told.get("while_waiting", "keep")
    if (
        not isinstance(limit, int)
        or isinstance(limit, bool)
        or not 0 < limit <= MAX_RUNS
        or waiting not in _WHILE_WAITING
        or told.keys() - {"limit", "while_waiting"}
    ):
        raise DeclarationError(
            f"{name}: concurrency is a number from 1 to {MAX_RUNS:,}, or "
            '{"limit": 2, "while_waiting": "keep" or "give_back"}.'
        )
    return Concurrency(limit=limit, lends=waiting == "give_back")


def _priority(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or abs(given) > MAX_PRIORITY:
        raise DeclarationError(
            f"{name}: priority is a number from -{MAX_PRIORITY} to {MAX_PRIORITY}."
        )
    return given


def _texts(shape: Shape, path: tuple[str, ...]) -> Iterator[str]:
    """Every text of the shape that gets a column; raises for a name that fits none."""
    if isinstance(shape, LeafShape):
        yield _fitting(shape.label)
    elif isinstance(shape, LoopShape):
        inner = (*path, shape.name)
        # The row of a review stands under this name, see the projection.
        if isinstance(shape.body, LoopShape) and shape.body.name == REVIEW:
            raise DeclarationError(f"The loop in the body of {shape.name!r} may not be {REVIEW!r}.")
        yield _fitting(shape.name)
        yield from _texts(shape.body, inner)
        if shape.review is not None:
            yield from _texts(shape.review, inner)
    else:
        yield _fitting(shape.name)
        for node in shape.nodes:
            inner = (*path, shape.name, node.name)
            if len(canonical_json(list(inner)).encode()) > MAX_PATH_BYTES:
                raise DeclarationError(
                    f"The names down to {node.name!r:.60} are too long together."
                )
            yield from (_fitting(node.name), node.desc or "", node.gate or "")
            yield from _texts(node.job, inner)


def _fitting(name: str) -> str:
    if len(name) > MAX_NAME:
        raise DeclarationError(f"The name {name!r:.60} is longer than {MAX_NAME} characters.")
    return name


def _schema(params: Any) -> Mapping[str, Any]:
    if params is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if isinstance(params, Mapping):
        return params
    if hasattr(params, "model_json_schema"):
        schema: Mapping[str, Any] = params.model_json_schema()
        return schema
    raise DeclarationError("params is a JSON Schema or a pydantic model.")


# The file being imported, so that a workflow knows where it came from.
_loading: list[str] = []


class loading:  # noqa: N801  reads as a statement: `with loading(file)`
    """Everything published inside belongs to this file."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __enter__(self) -> None:
        _loading.append(self._module)

    def __exit__(self, *_: object) -> None:
        _loading.pop()


def offered() -> Mapping[str, Published]:
    """Everything published in this process so far."""
    return dict(_offered)


def withdraw(module: str) -> None:
    """Forget what one file published: it did not import to its end."""
    for name in [made.name for made in _offered.values() if made.module == module]:
        del _offered[name]


def withdraw_all() -> None:
    """Forget what was published, before the files are read again."""
    _offered.clear()
