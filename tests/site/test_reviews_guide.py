"""The guide to reviews says what the product does: its code is run as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gates.reviews import diffs
from runs import Interaction, human_review
from runs.kernel import annotations as said
from runs.kernel import interactions
from runs.kernel.diffs import MAX_FILES, MAX_TEXT, diff_of
from runs.shapes.job import Job, Loop

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "reviews.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_every_example_of_the_guide_is_a_job() -> None:
    names: dict[str, Any] = {"mend": str, "human_review": human_review, "Interaction": Interaction}
    first, second, third = blocks("python")
    exec(first, names)
    assert isinstance(names["draft"], Loop)
    for example in (second, third):
        *before, last = re.split(r"\n(?=human_review\()", f"\n{example}")
        exec("\n".join(before), names)
        assert isinstance(eval(last.strip(), names), Job)


def test_the_responses_of_the_guide_are_responses() -> None:
    response, annotation = (json.loads(block) for block in blocks("json"))
    assert interactions.response_fault(response) is None
    path, line = annotation["anchor"]["target"], annotation["anchor"]["position"]
    diff = diff_of({path: "x\n" * line})
    assert diff is not None
    author, at = annotation["author"], annotation["createdAt"]
    assert said.placed([annotation], diff, author=author, at=at) == [annotation]


def test_the_limits_of_the_guide_are_the_limits() -> None:
    told = (
        f"| {MAX_FILES}; more",
        f"| {MAX_TEXT // 1024 // 1024} MiB, beyond",
        f"| {diffs.FIRST_FILES} files and about {diffs.FIRST_LINES:,} lines",
        f"| {diffs.LONG_FILE:,}, and {diffs.MAX_LINES:,} are shown",
        f"cut at {said.MAX_BODY:,}\ncharacters; {said.MAX_ANNOTATIONS} comments",
    )
    assert [one for one in told if one not in GUIDE] == []
