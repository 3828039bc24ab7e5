"""The parts a record is read into: lines, tools, and the runs of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from runs.report.text import Wire, text


@dataclass(slots=True)
class Line:
    """Something that was said; a `whole` one is never cut."""

    text: str
    whole: bool = False


@dataclass(slots=True)
class Tool:
    """How often a tool was used, and on what."""

    count: int = 0
    targets: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class NodeRun:
    """One run of a node: an attempt from its start to its latest outcome."""

    attempt: int | None
    started: int | None = None
    ended: int | None = None
    outcome: Wire | None = None
    kickback: Wire | None = None
    calls: int = 0
    tools: dict[str, Tool] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def use(self, event: Wire) -> None:
        """Fold the uses of a tool; its results say nothing new."""
        if event.get("phase") == "result":
            return
        tool = self.tools.setdefault(text(event.get("name")), Tool())
        tool.count += 1
        if target := text(event.get("target")):
            tool.targets[target] = None
