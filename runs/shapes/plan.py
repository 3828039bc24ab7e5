"""Reading a job's declared shape: meta, a printed plan, assertions (runs.md section 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runs.kernel.conditions import labels_of
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, NodeShape, Shape
from runs.kernel.panels import PanelRule
from runs.shapes.job import Job, Leaf

Meta = dict[str, Any]


def job_meta(job: Any) -> Meta | None:
    """The declared shape as JSON; None for a hand-written job (runs.md R186)."""
    job = getattr(job, "__obversa_job__", job)
    if not isinstance(job, Job) or (isinstance(job, Leaf) and not job.declared):
        return None
    return _meta(job.shape)


def copy_job_meta(source: Any, target: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give a wrapper the wrapped job's meta; returns the wrapper (runs.md R189)."""
    inner = getattr(source, "__obversa_job__", source)
    target.__obversa_job__ = inner  # type: ignore[attr-defined]  # a function takes attributes
    return target


def _meta(shape: Shape) -> Meta | None:
    if isinstance(shape, LeafShape):
        if shape.kind == "job":
            return None
        shown = {key: value for key, value in shape.extra.items() if key != "watches"}
        meta: Meta = {"kind": shape.kind, "name": shape.label, **shown}
        if shape.ask is not None:
            meta["question"] = shape.ask.question
            if shape.ask.target is not None:
                meta["target"] = shape.ask.target
        return meta
    if isinstance(shape, LoopShape):
        return _loop_meta(shape)
    if shape.panel is not None:
        return _panel_meta(shape, shape.panel)
    meta = {"kind": "dag", "name": shape.name}
    if shape.max_kickbacks is not None:
        limits = shape.max_kickbacks
        meta["maxKickbacks"] = limits if isinstance(limits, int) else dict(limits)
    meta["nodes"] = [_node_meta(node) for node in shape.nodes]
    return meta


def _panel_meta(shape: GraphShape, rule: PanelRule) -> Meta:
    meta: Meta = {"kind": shape.kind, "name": shape.name}
    meta["pass"] = "all" if rule.needs_all else rule.required
    if rule.target is not None:
        meta["target"] = rule.target
    reviewers = [{"name": node.name, "job": _meta(node.job)} for node in shape.nodes]
    return meta | {"reviewers": reviewers}


def _loop_meta(shape: LoopShape) -> Meta:
    """runs.md R188."""
    meta: Meta = {"kind": "loop", "name": shape.name}
    if shape.max is not None:
        meta["max"] = shape.max
    if shape.no_progress is not None:
        meta["noProgress"] = shape.no_progress.window
    meta["checkFirst"] = shape.check_first
    for name, which in (("start", "start"), ("gate", "until"), ("stopOn", "stopOn")):
        data = shape.condition(which)
        meta[name] = [] if data is None else labels_of(data)
    meta["review"] = shape.review is not None
    if shape.max_review_restarts is not None:
        meta["maxReviewRestarts"] = shape.max_review_restarts
    meta["body"] = _meta(shape.body)
    if shape.review is not None:
        meta["reviewJob"] = _meta(shape.review)
    return meta


def _node_meta(node: NodeShape) -> Meta:
    meta: Meta = {"name": node.name, "needs": list(node.needs)}
    for key, value in (("desc", node.desc), ("gate", node.gate), ("timeoutMs", node.timeout_ms)):
        if value is not None:
            meta[key] = value
    meta |= {"isolate": node.isolate, "optional": node.optional}
    if node.when is not None:
        meta["when"] = labels_of(node.when)
    if node.accepts_kickback_to:
        meta["acceptsKickbackTo"] = list(node.accepts_kickback_to)
    meta["job"] = _meta(node.job)
    return meta


def render_plan(meta: Meta | Any | None, indent: str = "") -> list[str]:
    """The plan as indented lines a person reads (runs.md R190)."""
    if meta is not None and not isinstance(meta, dict):
        meta = job_meta(meta)
    if meta is None:
        return [f"{indent}(a hand-written job)"]
    if meta["kind"] == "loop":
        return [f"{indent}loop {meta['name']}{_bounds(meta)}", *_rounds(meta, indent + "  ")]
    if meta["kind"] == "reviewPanel":
        return _panel_lines(meta, indent)
    if meta["kind"] != "dag":
        target = f", sends back to {meta['target']}" if "target" in meta else ""
        line = f"{indent}{meta['kind']} {meta['name']}{target}"
        return [line, *(render_plan(meta["job"], indent + "  ") if "job" in meta else ())]
    lines = [f"{indent}dag {meta['name']} ({_counted(meta)})"]
    for node in meta["nodes"]:
        lines.append(f"{indent}  {node['name']}{_traits(node)}")
        lines += render_plan(node["job"], indent + "    ")
    return lines


def _panel_lines(meta: Meta, indent: str) -> list[str]:
    target = f", sends back to {meta['target']}" if "target" in meta else ""
    count = len(meta["reviewers"])
    lines = [f"{indent}review panel {meta['name']} ({meta['pass']} of {count} agree{target})"]
    for reviewer in meta["reviewers"]:
        lines += [f"{indent}  {reviewer['name']}", *render_plan(reviewer["job"], indent + "    ")]
    return lines


def _bounds(meta: Meta) -> str:
    """What bounds a loop, in words."""
    bounds = []
    if "max" in meta:
        bounds.append(f"at most {meta['max']} rounds")
    if "maxReviewRestarts" in meta:
        bounds.append(f"at most {meta['maxReviewRestarts']} rejections")
    if "noProgress" in meta:
        bounds.append(f"stalls after {meta['noProgress']} flat rounds")
    for key, words in (("start", "starts when"), ("gate", "until"), ("stopOn", "stops on")):
        if meta[key]:
            bounds.append(f"{words} {' and '.join(meta[key])}")
    if meta["checkFirst"]:
        bounds.append("checks first")
    return f" ({'; '.join(bounds)})" if bounds else ""


def _rounds(meta: Meta, indent: str) -> list[str]:
    lines = render_plan(meta["body"], indent)
    if meta["review"]:
        lines += [f"{indent}reviewed by", *render_plan(meta.get("reviewJob"), indent + "  ")]
    return lines


def _counted(meta: Meta) -> str:
    count = len(meta["nodes"])
    text = f"{count} node{'' if count == 1 else 's'}"
    match meta.get("maxKickbacks"):
        case None:
            return text
        case int(limit):
            return f"{text}, at most {limit} send-backs"
        case limits:
            each = ", ".join(f"{target} {limit}" for target, limit in limits.items())
            return f"{text}, send-backs: {each}"


def _traits(node: Meta) -> str:
    traits = []
    if node["needs"]:
        traits.append(f"needs {', '.join(node['needs'])}")
    if node["optional"]:
        traits.append("optional")
    if node.get("when"):
        traits.append(f"when {' and '.join(node['when'])}")
    if node["isolate"]:
        traits.append("isolated")
    return f" [{'; '.join(traits)}]" if traits else ""


def assert_graph(job_or_meta: Any, shape: Mapping[str, Any]) -> None:
    """Raise AssertionError where the asserted fields differ, naming the path (runs.md R191)."""
    meta = job_or_meta if isinstance(job_or_meta, dict) else job_meta(job_or_meta)
    if meta is None:
        raise DeclarationError("assert_graph() needs a job that declares its shape.")
    for key, expected in shape.items():
        if key == "body":
            _assert_inner("body", meta.get("body"), expected)
        elif key == "nodes":
            exact = bool(shape.get("exact_nodes"))
            _assert_nodes(meta.get("nodes", []), expected, exact=exact)
        elif key != "exact_nodes":
            name = "maxKickbacks" if key == "max_kickbacks" else key
            _equal(name, expected, meta.get(name))


def _assert_nodes(actual: list[Meta], expected: Mapping[str, Any], *, exact: bool) -> None:
    found = {node["name"]: node for node in actual}
    if exact:
        _equal("nodes", sorted(expected), sorted(found))
    for name, asserted in expected.items():
        if name not in found:
            raise AssertionError(f"nodes[{name}]: expected a node, found {sorted(found)}")
        for key, value in dict(asserted or {}).items():
            _assert_field(f"nodes[{name}]", key, value, found[name])


def _assert_field(at: str, key: str, expected: Any, node: Meta) -> None:
    match key:
        case "needs":
            _equal(f"{at}.needs", sorted(expected), sorted(node["needs"]))
        case "when":
            _equal(f"{at}.when", bool(expected), "when" in node)
        case "kind":
            _equal(f"{at}.kind", expected, (node["job"] or {}).get("kind"))
        case "body" | "job":
            _assert_inner(at, node["job"], expected)
        case _:
            camel = {"accepts_kickback_to": "acceptsKickbackTo", "timeout_ms": "timeoutMs"}
            _equal(f"{at}.{key}", expected, node.get(camel.get(key, key)))


def _assert_inner(at: str, meta: Meta | None, expected: Mapping[str, Any]) -> None:
    try:
        assert_graph(meta or {}, expected)
    except AssertionError as difference:
        raise AssertionError(f"{at}.{difference}") from None


def _equal(at: str, expected: Any, actual: Any) -> None:
    if expected != actual:
        raise AssertionError(f"{at}: expected {expected!r}, found {actual!r}")
