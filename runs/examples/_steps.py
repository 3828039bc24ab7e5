"""What each step of the release does.

Every step may run twice. The clone in the run's workspace is made again when it is missing, so a
worker that takes over needs nothing but the record.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runs import Finding, Outcome, revision_request
from runs.engines.command import (
    CommandSpec,
    combined_output,
    evidence,
    met,
    reason,
    run_command,
)
from runs.examples._archive import digest_of, write_archive
from runs.examples._changes import changes, described, plain
from runs.examples._git import HIDDEN_VARIABLES, Cancelled, Git, clone, clone_holding, find_commit
from runs.examples._notes import release_notes
from runs.examples._source import Refused, Request
from runs.examples._tags import check_tag, make_tag, push_tag
from runs.kernel.jsonable import JSONValue

if TYPE_CHECKING:
    from runs.drivers.context import Context

_LAST_LINES: Final = 20
Step = Callable[["Context"], Outcome]


def _careful(step: Step) -> Step:
    """A refusal becomes a finding, a cancel an aborted step."""

    @functools.wraps(step)
    def run(ctx: Context) -> Outcome:
        try:
            return step(ctx)
        except Cancelled:
            return Outcome(status="aborted", summary="The run was cancelled.")
        except Refused as refusal:
            return revision_request(reason=str(refusal), findings=[Finding(evidence=str(refusal))])

    return run


@contextmanager
def _scratch(ctx: Context, name: str) -> Iterator[Path]:
    """A directory for one try of a step; a try that was given up cannot be in its way."""
    workspace = Path(ctx.workspace.dir)
    workspace.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=workspace))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _data(ctx: Context, name: str) -> Mapping[str, Any]:
    outcome = (ctx.needs or {}).get(name)
    if outcome is None or not isinstance(outcome.data, Mapping):
        raise Refused(f"The step {name} left nothing to work with.")
    return outcome.data


def _clone(ctx: Context, request: Request) -> tuple[Git, str]:
    """The clone and the commit that `inspect` found."""
    commit = str(_data(ctx, "inspect")["commit"]["id"])
    workspace = Path(ctx.workspace.dir)
    return clone_holding(workspace, request.repository, commit, ctx.signal.is_set), commit


def _refusal(ctx: Context) -> str | None:
    """The note of the no that sent the work back here."""
    review = ctx.last_review
    if review is None:
        return None
    found = review.revision.findings if review.revision is not None else ()
    return "\n".join(finding.evidence for finding in found) or review.summary


@_careful
def inspect_source(ctx: Context) -> Outcome:
    """Clone, find the commit, and list what changed since the last tag."""
    request = Request.read(ctx.params)
    note = _refusal(ctx)
    if note is not None:
        ctx.log(f"Looking again after a no: {plain(note)}")
    ctx.log(f"Cloning {request.repository}")
    git = clone(Path(ctx.workspace.dir), request.repository, ctx.signal.is_set)
    git.run("check-ref-format", f"refs/tags/{request.tag}", doing=f"Naming a tag {request.tag}")
    commit = find_commit(git, request.revision)
    if commit is None:
        raise Refused(f"There is no commit at {request.revision} in {request.repository}.")
    # Nobody should be asked to approve what cannot be tagged.
    tagged = check_tag(git, request.tag, commit)
    found = changes(git, commit, request.tag)
    data: dict[str, JSONValue] = {
        "name": request.name,
        "version": request.version,
        "tag": request.tag,
        "tagged": tagged,
        "repository": request.repository,
        "revision": request.revision,
        "commit": described(git, commit),
        "changes": found,
        "round": 1 if ctx.graph is None else ctx.graph.attempt,
        "previousNote": note,
    }
    since = f"since {found['since']}" if found["since"] else "from the beginning"
    return Outcome(
        status="pass", summary=f"{commit[:12]}, {found['count']} commits {since}", data=data
    )


@_careful
def run_tests(ctx: Context) -> Outcome:
    """Run the test command in a checkout of its own and keep its output."""
    request = Request.read(ctx.params)
    if not request.test_command:
        data: dict[str, JSONValue] = {"command": None, "exitCode": None, "lastLines": []}
        return Outcome(status="pass", summary="No test command was given.", data=data)
    git, commit = _clone(ctx, request)
    with _scratch(ctx, "checkout") as directory:
        checkout = directory / request.name
        Git(directory, git.cancelled).run(
            *("clone", "--quiet", "--no-checkout", "--template="),
            *("--", str(git.directory.resolve()), checkout.name),
            doing="Making a checkout",
        )
        Git(checkout, git.cancelled).run(
            "checkout", "--quiet", "--detach", commit, doing="Checking the commit out"
        )
        ctx.log(f"Running {request.test_command_text}")
        result = run_command(
            CommandSpec(argv=request.test_command, cwd=checkout, unset=HIDDEN_VARIABLES),
            cancelled=git.cancelled,
        )
    if result.cancelled:
        raise Cancelled
    output = combined_output(result)
    log = ctx.attach(
        "test-output.txt", f"{reason(result)}\n\n{output}\n".encode(), "text/plain; charset=utf-8"
    )
    kept: dict[str, JSONValue] = {
        "command": request.test_command_text,
        "exitCode": result.exit_code,
        "lastLines": [plain(line) for line in output.splitlines()[-_LAST_LINES:]],
        "output": dict(log),
    }
    if met(result):
        return Outcome(status="pass", summary=reason(result), data=kept, command=result.to_json())
    return revision_request(
        reason=reason(result),
        findings=[Finding(evidence=evidence(result) or reason(result))],
        data=kept,
        command=result.to_json(),
    )


@_careful
def build_archive(ctx: Context) -> Outcome:
    """Pack the commit and keep the archive as an artifact."""
    request = Request.read(ctx.params)
    git, commit = _clone(ctx, request)
    with _scratch(ctx, "build") as directory:
        archive = write_archive(git, commit, request.archive_stem, directory)
        digest, size = digest_of(archive), archive.stat().st_size
        ctx.attach(archive.name, archive, "application/gzip")
    artifact: JSONValue = {"name": archive.name, "digest": digest, "size": size}
    return Outcome(
        status="pass",
        summary=f"{archive.name}, {size} bytes, {digest[:19]}",
        data={"artifact": artifact},
    )


def evidence_for_approval(ctx: Context) -> JSONValue:
    """What a person sees before saying yes or no."""
    source, tested = _data(ctx, "inspect"), _data(ctx, "test")
    return {
        "version": source["version"],
        "tag": source["tag"],
        "repository": source["repository"],
        "commit": source["commit"],
        "changes": source["changes"],
        "test": {
            "result": "not run" if tested["command"] is None else "passed",
            "command": tested["command"] or "no test command given",
            "exitCode": tested["exitCode"],
            "lastLines": tested["lastLines"],
        },
        "artifact": _data(ctx, "build")["artifact"],
        "push": ctx.params.get("push") is True,
        "round": source["round"],
        "previousNote": source["previousNote"],
    }


@_careful
def tag_commit(ctx: Context) -> Outcome:
    """Tag the approved commit and push the tag when asked to."""
    request = Request.read(ctx.params)
    git, commit = _clone(ctx, request)
    made = make_tag(git, request.tag, commit, f"Release {request.version}")
    pushed = request.push and push_tag(git, request.tag, commit)
    words = [f"{request.tag} on {commit[:12]}", "made" if made else "was there already"]
    if request.push:
        words.append("pushed" if pushed else "was pushed already")
    data: dict[str, JSONValue] = {
        "tag": request.tag,
        "commit": commit,
        "made": made,
        "pushed": request.push,
    }
    return Outcome(status="pass", summary=", ".join(words), data=data)


@_careful
def announce_release(ctx: Context) -> Outcome:
    """Write the release notes and keep them as an artifact."""
    source = _data(ctx, "inspect")
    notes = release_notes(
        source, _data(ctx, "test"), _data(ctx, "build")["artifact"], _data(ctx, "tag")
    )
    kept = ctx.attach("release-notes.md", notes.encode(), "text/markdown; charset=utf-8")
    return Outcome(
        status="pass",
        summary=f"{source['name']} {source['version']} is released.",
        data={"notes": dict(kept)},
    )
