"""Which jobs compare the workspace with what it was before (runs.md R77)."""

from __future__ import annotations

from runs.kernel.conditions import watches_workspace
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, Shape


def watches(shape: Shape) -> bool:
    """Whether a condition in the job, at any depth, looks at what changed since a loop began."""
    match shape:
        case LeafShape():
            return bool(shape.extra.get("watches"))
        case GraphShape():
            return any(
                watches(node.job) or (node.when is not None and watches_workspace(node.when))
                for node in shape.nodes
            )
        case LoopShape():
            checks = (shape.start, shape.until, shape.stop_on)
            jobs = (shape.body, shape.review)
            return any(watches_workspace(check) for check in checks if check is not None) or any(
                watches(job) for job in jobs if job is not None
            )
