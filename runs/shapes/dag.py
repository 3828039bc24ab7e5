"""Graphs of named steps, and the two plain cases of them (runs.md section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, cast

from runs.kernel.conditions import Condition, required_names, to_condition
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import GraphShape, LeafShape, Limits, NodeShape, OnConflict, PausePolicy
from runs.shapes.environed import check_environment, with_environment
from runs.shapes.job import Graph, Job, to_job
from runs.shapes.retry import to_policy

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Node:
    """A member of a graph; the same keys may be given as a mapping."""

    job: Any
    needs: str | Sequence[str] = ()
    desc: str | None = None
    gate: str | None = None
    when: Any = None
    optional: bool = False
    isolate: bool | None = None
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None
    accepts_kickback_to: Sequence[str] = ()
    retry_safe: bool = False
    retry: Any = None
    file: str | None = None


@dataclass(frozen=True, kw_only=True)
class PipelineStage:
    """A stage of a pipeline; without `needs` it needs the stage before it."""

    name: str
    job: Any
    needs: str | Sequence[str] | None = None
    desc: str | None = None
    gate: str | None = None
    when: Any = None
    optional: bool = False
    isolate: bool | None = None
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None
    accepts_kickback_to: Sequence[str] = ()
    retry_safe: bool = False
    retry: Any = None
    file: str | None = None


def dag(
    name: str,
    nodes: Mapping[str, Any],
    *,
    concurrency: int | None = None,
    stop_on_error: bool = True,
    isolation: Literal["worktree"] | None = None,
    on_conflict: OnConflict = "fail",
    environment: Any = None,
    max_kickbacks: Limits = None,
    pause_policy: PausePolicy = "continue",
    brief: str | None = None,
    use_case: str | None = None,
) -> Job:
    """A dependency graph of jobs; raises DeclarationError for one that cannot be (R106-R112)."""
    if not isinstance(name, str) or not name:
        raise DeclarationError("a graph needs a name.")
    if pause_policy not in ("continue", "stop"):
        raise DeclarationError('pause_policy is "continue" or "stop".')
    if isolation not in (None, "worktree") or on_conflict not in ("fail", "synthesize"):
        raise DeclarationError('isolation is "worktree", on_conflict "fail" or "synthesize".')
    read = {key: _node(name, key, value) for key, value in dict(nodes).items()}
    jobs = {key: to_job(node.job) for key, node in read.items()}
    whens = {key: to_condition(node.when) for key, node in read.items() if node.when is not None}
    shape = GraphShape(
        name=name,
        nodes=tuple(
            _shape(name, key, node, jobs[key], whens.get(key), isolation)
            for key, node in read.items()
        ),
        concurrency=_concurrency(name, concurrency),
        stop_on_error=stop_on_error,
        isolation=isolation,
        on_conflict=on_conflict,
        max_kickbacks=_limits(name, max_kickbacks, read),
        pause_policy=pause_policy,
        brief=brief,
        use_case=use_case,
    )
    _check(shape)
    check_environment(name, environment)
    for node in shape.nodes:
        if node.isolate and environment is not None:
            jobs[node.name] = with_environment(jobs[node.name], environment)
    return Graph(shape, jobs, whens)


def pipeline(name: str, stages: Iterable[Any], **options: Any) -> Job:
    """Stages in order, each needing the one before unless it says otherwise (R143)."""
    nodes: dict[str, Node] = {}
    before: str | None = None
    for given in stages:
        stage = given if isinstance(given, PipelineStage) else _stage(name, given)
        if not isinstance(stage.name, str) or not stage.name:
            raise DeclarationError(f"pipeline {name!r} has a stage without a name.")
        if stage.name in nodes:
            raise DeclarationError(f"pipeline {name!r} has two stages named {stage.name!r}.")
        values = {item.name: getattr(stage, item.name) for item in fields(stage)}
        values.pop("name")
        if values["needs"] is None:
            values["needs"] = () if before is None else (before,)
        nodes[stage.name] = Node(**values)
        before = stage.name
    if not nodes:
        raise DeclarationError(f"pipeline {name!r} has no stages.")
    return dag(name, nodes, **options)


def sequence(name: str, *jobs: Any) -> Job:
    """Jobs one after the other, as nodes step-0, step-1, ... (R144)."""
    nodes = {
        f"step-{index}": Node(job=job, needs=(f"step-{index - 1}",) if index else ())
        for index, job in enumerate(jobs)
    }
    return dag(name, nodes, concurrency=1)


def parallel(
    name: str, jobs: Mapping[str, Any] | Iterable[Any], concurrency: int | None = None
) -> Job:
    """Jobs side by side, by name or as task-0, task-1, ...; one failure stops no other (R145)."""
    if not isinstance(jobs, Mapping):
        jobs = {f"task-{index}": job for index, job in enumerate(jobs)}
    nodes = {key: Node(job=job) for key, job in jobs.items()}
    return dag(name, nodes, concurrency=concurrency, stop_on_error=False)


def _node(graph: str, name: str, given: Any) -> Node:
    if not isinstance(name, str) or not name:
        raise DeclarationError(f"graph {graph!r} has a node without a name.")
    if isinstance(given, Node):
        return given
    if isinstance(given, Mapping):
        return _from_mapping(Node, f"node {name!r} of graph {graph!r}", given)
    return Node(job=given)


def _stage(name: str, given: Any) -> PipelineStage:
    if not isinstance(given, Mapping):
        raise DeclarationError(f"a stage of pipeline {name!r} is a mapping or a PipelineStage.")
    return _from_mapping(PipelineStage, f"a stage of pipeline {name!r}", given)


def _from_mapping(kind: type[T], what: str, given: Mapping[str, Any]) -> T:
    known = {item.name for item in fields(cast("Any", kind))}
    unknown = sorted(set(given) - known)
    if unknown:
        raise DeclarationError(f"{what} has unknown keys: {', '.join(map(str, unknown))}.")
    for key in ("name", "job"):
        if key in known and key not in given:
            raise DeclarationError(f"{what} has no {key}.")
    return kind(**given)


def _shape(
    graph: str, name: str, node: Node, job: Job, when: Condition | None, isolation: str | None
) -> NodeShape:
    where = f"node {name!r} of graph {graph!r}"
    if not isinstance(node.retry_safe, bool):
        raise DeclarationError(f"retry_safe of {where} is no bool.")
    for key in ("desc", "gate", "file"):
        if not isinstance(getattr(node, key), str | None):
            raise DeclarationError(f"{key} of {where} is no text.")
    for key in ("timeout_ms", "timeout_grace_ms"):
        if getattr(node, key) is not None and not _is_count(getattr(node, key)):
            raise DeclarationError(f"{key} of {where} is no count of 0 or more.")
    isolate = isolation == "worktree" if node.isolate is None else bool(node.isolate)
    if isolate and not isinstance(job.shape, LeafShape):
        raise DeclarationError(
            f"{where} is a {job.shape.kind}, which has no worktree of its own: "
            "isolate the steps inside it, and give this node isolate=False."
        )
    needs = (node.needs,) if isinstance(node.needs, str) else _names(node.needs, "needs", where)
    return NodeShape(
        name=name,
        job=job.shape,
        needs=needs,
        when=None if when is None else dict(when.shape),
        optional=bool(node.optional),
        isolate=isolate,
        accepts_kickback_to=_names(node.accepts_kickback_to, "accepts_kickback_to", where),
        retry_safe=node.retry_safe,
        retry=to_policy(node.retry, where),
        timeout_ms=node.timeout_ms,
        timeout_grace_ms=node.timeout_grace_ms,
        desc=node.desc,
        gate=node.gate,
        file=node.file,
    )


def _names(given: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise DeclarationError(f"{key} of {where} is no list of names.")
    return tuple(dict.fromkeys(given))


def _concurrency(graph: str, given: int | None) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise DeclarationError(f"concurrency of graph {graph!r} is no integer.")
    return given


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _limits(graph: str, given: Any, nodes: Mapping[str, Node]) -> Limits:
    if given is None or _is_count(given):
        return cast("int | None", given)
    if not isinstance(given, Mapping):
        raise DeclarationError(
            f"max_kickbacks of graph {graph!r} is a count of 0 or more, or a mapping of counts."
        )
    for target, limit in given.items():
        if target not in nodes:
            raise DeclarationError(
                f"max_kickbacks of graph {graph!r} names {target!r}, which is no node."
            )
        if not _is_count(limit):
            raise DeclarationError(
                f"max_kickbacks of graph {graph!r} gives {target!r} no count of 0 or more."
            )
    return dict(given)


def _check(graph: GraphShape) -> None:
    for node in graph.nodes:
        for need in node.needs:
            if need not in graph.by_name:
                raise DeclarationError(
                    f"node {node.name!r} of graph {graph.name!r} needs {need!r}, which is no node."
                )
    try:
        _ = graph.rank
    except ValueError as cycle:
        raise DeclarationError(str(cycle)) from cycle
    for node in graph.nodes:
        _check_when(graph, node)
        for target in node.accepts_kickback_to:
            if target not in graph.by_name or node.name not in graph.dependents(target):
                raise DeclarationError(
                    f"node {node.name!r} of graph {graph.name!r} accepts send-backs to {target!r}, "
                    "which it does not depend on."
                )


def _check_when(graph: GraphShape, node: NodeShape) -> None:
    for op, name in required_names(node.when) if node.when is not None else ():
        if name not in node.needs:
            raise DeclarationError(
                f"{op}({name!r}) of node {node.name!r} in graph {graph.name!r} reads a node that "
                "it does not need."
            )
        if op == "failed" and not graph.by_name[name].optional:
            raise DeclarationError(
                f"failed({name!r}) of node {node.name!r} in graph {graph.name!r} reads a node "
                "that is not optional."
            )
