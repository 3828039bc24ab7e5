"""The drawn graph of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.kernel.slots import REVIEW
from runs.models import Run, Step
from runs.pages.step_views import SCOPES, StepView, is_review

Rows = Mapping[str, Step]


def graph_of(run: Run, steps: list[StepView]) -> dict[str, Any] | None:
    """Nodes, groups and edges for the drawn graph, from the rows of the steps."""
    rows = {f"s{step.position}": step for step in run.steps.all()}
    if len(rows) < 2:
        return None
    ids = {tuple(step.path): key for key, step in rows.items()}
    owner = {path_id: _owner(row, ids, rows) for path_id, row in rows.items()}
    groups = [
        {
            "id": view.path_id,
            "label": f"{view.name}, {view.rounds_text}" if view.rounds_text else view.name,
            "parent": owner[view.path_id],
        }
        for view in steps
        if rows[view.path_id].kind in SCOPES
    ]
    nodes = [
        {
            "id": view.path_id,
            "label": view.name,
            "status": view.status,
            "word": view.status_word,
            "duration": view.duration_text,
            "rounds": view.rounds,
            "group": owner[view.path_id],
        }
        for view in steps
        if rows[view.path_id].kind not in SCOPES
    ]
    needed = {key: {ids[(*row.parent, need)] for need in row.needs} for key, row in rows.items()}
    edges = [
        {"from": need, "to": key, "kind": "needs", "count": 1}
        for key in rows
        for need in _told(needed, key)
    ]
    back = [
        {"from": view.path_id, "to": view.sent_back_to, "kind": "back", "count": 1}
        for view in steps
        if view.sent_back_to
    ]
    return {"nodes": nodes, "groups": groups, "edges": edges + back + _reviews(rows, ids)}


def _owner(row: Step, ids: Mapping[tuple[str, ...], str], rows: Rows) -> str | None:
    """The step that holds this one. A loop's body and review share a place: the name decides."""
    place = tuple(row.parent[:-1])
    reviewed = ids.get((*place, REVIEW))
    if reviewed is not None and is_review(rows[reviewed], ids):
        review = rows[reviewed]
        if review.kind in SCOPES and row.parent[-1:] == [review.name]:
            return reviewed
    return ids.get(place)


def _reviews(rows: Rows, ids: Mapping[tuple[str, ...], str]) -> list[dict[str, Any]]:
    """From a body to its review, and back as often as another round was wanted."""
    edges = []
    for key, row in rows.items():
        if is_review(row, ids):
            body = ids[tuple(row.path[:-1])]
            edges.append({"from": body, "to": key, "kind": "needs", "count": 1})
            if row.attempt > 1:
                edges.append({"from": key, "to": body, "kind": "back", "count": row.attempt - 1})
    return edges


def _told(needed: Mapping[str, set[str]], key: str) -> list[str]:
    """The needs that no other need of the same step says already: b after a, c after a and b."""
    behind: set[str] = set()
    left = [further for need in needed[key] for further in needed[need]]
    while left:
        one = left.pop()
        if one not in behind:
            behind.add(one)
            left.extend(needed[one])
    return sorted(needed[key] - behind)
