"""The release notes, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.examples._changes import escaped


def release_notes(
    source: Mapping[str, Any],
    test: Mapping[str, Any],
    artifact: Mapping[str, Any],
    tag: Mapping[str, Any],
) -> str:
    """What is in the release, where it came from and how it was checked."""
    return "\n".join(
        [
            f"# {escaped(source['name'])} {source['version']}",
            "",
            f"Tag `{tag['tag']}` on commit `{source['commit']['id']}`, {_place(tag)}.",
            "",
            *_changes(source["changes"]),
            "",
            "## Archive",
            "",
            f"- `{artifact['name']}`, {artifact['size']} bytes",
            f"- `{artifact['digest']}`",
            "",
            "## Tests",
            "",
            _tests(test),
            "",
        ]
    )


def _place(tag: Mapping[str, Any]) -> str:
    return "pushed to the repository" if tag["pushed"] else "not pushed"


def _changes(changes: Mapping[str, Any]) -> list[str]:
    since = f"since {escaped(changes['since'])}" if changes["since"] else "from the beginning"
    count = changes["count"]
    lines = [f"## Changes {since}", ""]
    lines += [
        f"- {escaped(commit['subject'])} (`{commit['id']}`, {escaped(commit['author'])})"
        for commit in changes["commits"]
    ]
    if changes["omitted"]:
        lines.append(f"- and {changes['omitted']} more, {count} in all")
    return lines if count else [*lines, "Nothing has changed."]


def _tests(test: Mapping[str, Any]) -> str:
    if test["command"] is None:
        return "No test command was given."
    # In a code span only the mark that ends it needs care, and no command holds one.
    return f"`{test['command']}` exited {test['exitCode']}."
