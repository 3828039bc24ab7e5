"""`publish(job, title=...)`: how an author offers a workflow. Loads no Django."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.kernel.errors import DeclarationError
from runs.kernel.graph import GraphShape, shape_identity
from runs.kernel.jsonable import digest_hex
from runs.shapes.job import Job, to_job


@dataclass(frozen=True, kw_only=True)
class Published:
    """One workflow as its author offered it."""

    name: str
    job: Job
    title: str
    description: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    audience: Mapping[str, Any] = field(default_factory=dict)
    module: str = ""

    @property
    def identity(self) -> str:
        return shape_identity(self.job.shape)

    @property
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
    name: str | None = None,
) -> Any:
    """Offer the job under its own name (or `name`); returns the job.

    `params` is a JSON Schema or a pydantic model. `audience` says who may see, start and answer;
    without it every signed-in person may.
    """
    made = to_job(job)
    shape = made.shape
    wanted = name or (shape.name if isinstance(shape, GraphShape) else shape.label)
    if not wanted or "/" in wanted or len(wanted) > 200:
        raise DeclarationError(f"{wanted!r} is no name for a workflow: 1 to 200 characters, no /.")
    _offered[wanted] = Published(
        name=wanted,
        job=made,
        title=title,
        description=description,
        params=_schema(params),
        audience=audience or {},
        module=_loading[-1] if _loading else "",
    )
    return job


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


def withdraw_all() -> None:
    """Forget what was published, before the files are read again."""
    _offered.clear()
