"""A workflow for a server of the tests: a writer, and a person's review of what it wrote."""

from __future__ import annotations

from typing import Any

from runs import fn_job, human_review, loop, pipeline
from runs.publishing import publish

OLD = "".join(f"Line {number} of the paper.\n" for number in range(1, 31))
NAME = "paper"


def write(ctx: Any) -> str:
    """Change the paper; in another round, answer each comment on the line it is about."""
    lines = OLD.replace("Line 3 of", "Line three of").replace("Line 20 of", "Line twenty of")
    if ctx.last_review is not None:
        told = ctx.last_review.data["feedback"]["annotations"]
        lines += "".join(f"Mended: {one['body']}\n" for one in told)
    return lines


def change(ctx: Any) -> Any:
    return {"changes": {"paper.md": {"old": OLD, "new": ctx.last_outcome.summary}}}


publish(
    pipeline(
        NAME,
        [
            {
                "name": "draft",
                "job": loop(
                    "draft",
                    fn_job("write", write, retry_safe=True),
                    review=human_review("review", "Is the paper right?", input=change),
                    max=3,
                ),
            },
            {"name": "print", "job": fn_job("print", lambda _ctx: "printed", retry_safe=True)},
        ],
    ),
    title="Write a paper",
)
