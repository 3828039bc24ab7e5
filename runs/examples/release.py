"""Release a git repository: look, test, build, ask a person, tag, announce."""

from __future__ import annotations

from typing import Final

from runs import PipelineStage, approval, fn_job, pipeline, publish
from runs.examples._source import VERSION_LENGTH, VERSION_PATTERN
from runs.examples._steps import (
    announce_release,
    build_archive,
    evidence_for_approval,
    inspect_source,
    run_tests,
    tag_commit,
)
from runs.kernel.jsonable import JSONValue

PARAMS: Final[dict[str, JSONValue]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A release",
    "type": "object",
    "properties": {
        "repository": {
            "type": "string",
            "title": "Repository",
            "description": "A path on the worker's machine, or a URL the worker can reach.",
            "minLength": 1,
            "maxLength": 1000,
            "examples": ["/srv/git/shop.git", "https://git.example.org/shop.git"],
        },
        "version": {
            "type": "string",
            "title": "Version",
            "description": "The tag is this version with a v in front.",
            "pattern": VERSION_PATTERN,
            "maxLength": VERSION_LENGTH,
            "examples": ["2.4.0", "2.4.0-rc.1"],
        },
        "revision": {
            "type": "string",
            "title": "Revision",
            "description": "The branch, tag or commit to release. HEAD is the default branch.",
            "default": "HEAD",
            "maxLength": 256,
            "examples": ["main", "HEAD"],
        },
        "testCommand": {
            "type": "string",
            "title": "Test command",
            "description": "Run in a checkout of the commit. One program and its arguments; no "
            "shell reads it. Empty: nothing is tested, and the question says so.",
            "default": "",
            "maxLength": 1000,
            "examples": ["make test", "python -m pytest -q"],
        },
        "push": {
            "type": "boolean",
            "title": "Push the tag",
            "description": "Push the tag back to the repository after a yes.",
            "default": False,
        },
    },
    "required": ["repository", "version"],
    "additionalProperties": False,
}

PRESENTATION: Final[dict[str, JSONValue]] = {
    "yesLabel": "Approve {version}",
    "noLabel": "Send back to inspect",
    "summary": [
        {"label": "Version", "pointer": "/version"},
        {"label": "Commit", "pointer": "/commit"},
        {"label": "Since", "pointer": "/changes/since"},
        {"label": "Changes", "pointer": "/changes/commits", "count": "/changes/count"},
        {"label": "Tests", "pointer": "/test/result"},
        {"label": "Test command", "pointer": "/test/command"},
        {"label": "Its last lines", "pointer": "/test/lastLines", "as": "output"},
        {"label": "Archive", "pointer": "/artifact"},
        {"label": "Push the tag", "pointer": "/push"},
        {"label": "Refused before", "pointer": "/previousNote"},
    ],
}

release = pipeline(
    "release",
    [
        PipelineStage(
            name="inspect",
            job=fn_job("inspect", inspect_source),
            desc="Clone the repository and list what changed since the last tag.",
            retry_safe=True,
        ),
        PipelineStage(
            name="test",
            job=fn_job("test", run_tests),
            desc="Run the test command in a checkout of the commit.",
            gate="The test command exits 0.",
            retry_safe=True,
        ),
        PipelineStage(
            name="build",
            job=fn_job("build", build_archive),
            needs=("inspect", "test"),
            desc="Pack the commit into an archive.",
            retry_safe=True,
        ),
        PipelineStage(
            name="approve",
            job=approval(
                "approve",
                question="Approve release **{version}**?",
                input=evidence_for_approval,
                target="inspect",
                per_attempt=True,
                presentation=PRESENTATION,
            ),
            needs=("inspect", "test", "build"),
            accepts_kickback_to=("inspect",),
            desc="A person looks at the changes, the test result and the archive.",
            gate="A person says yes.",
        ),
        PipelineStage(
            name="tag",
            job=fn_job("tag", tag_commit),
            needs=("inspect", "approve"),
            desc="Tag the commit, and push the tag when asked to.",
            retry_safe=True,
        ),
        PipelineStage(
            name="announce",
            job=fn_job("announce", announce_release),
            needs=("inspect", "test", "build", "tag"),
            desc="Write the release notes.",
            retry_safe=True,
        ),
    ],
    max_kickbacks=2,
)

publish(
    release,
    title="Release a git repository",
    description="Clones a repository, tests and packs a commit, asks a person, then tags it and "
    "writes the release notes.",
    params=PARAMS,
    # The test command is any program, run as the worker: starting a release is a trusted act.
    starters={"permissions": ["runs.add_run"]},
)
