from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.context import Workspace
from runs.examples import _steps
from runs.examples._steps import (
    announce_release,
    build_archive,
    evidence_for_approval,
    inspect_source,
    run_tests,
    tag_commit,
)
from runs.kernel.jsonable import canonical_json, sha256_bytes
from tests.examples.repositories import ReleaseContext, commit, data, git, until_approval


class TestTests:
    def test_the_command_runs_in_a_checkout_and_its_output_is_kept(
        self, ctx: ReleaseContext
    ) -> None:
        ctx.do("inspect", inspect_source)
        outcome = ctx.do("test", run_tests)

        assert outcome.passed
        assert data(outcome)["lastLines"] == ("14 passed",)
        assert data(outcome)["exitCode"] == 0
        assert b"14 passed" in ctx.artifacts["test-output.txt"]
        assert data(outcome)["output"]["name"] == "test-output.txt"
        assert outcome.command is not None
        assert [path.name for path in ctx.workspace.dir.iterdir()] == ["repository.git"]

    def test_a_red_command_fails_with_its_output_as_finding(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        commit(repository, "Break it", **{"check.py": "print('1 failed'); raise SystemExit(3)"})
        ctx.do("inspect", inspect_source)
        outcome = ctx.do("test", run_tests)

        assert outcome.status == "fail"
        assert outcome.revision is not None
        assert "1 failed" in outcome.revision.findings[0].evidence
        assert data(outcome)["exitCode"] == 3
        assert b"1 failed" in ctx.artifacts["test-output.txt"]

    def test_a_command_that_is_not_there_fails_and_says_so(self, ctx: ReleaseContext) -> None:
        ctx.params["testCommand"] = "no-such-program --all"
        ctx.do("inspect", inspect_source)

        assert "could not be started" in str(run_tests(ctx).summary)

    def test_no_command_is_said_and_nothing_is_kept(self, ctx: ReleaseContext) -> None:
        ctx.params["testCommand"] = "  "
        ctx.do("inspect", inspect_source)

        assert run_tests(ctx).summary == "No test command was given."
        assert ctx.artifacts == {}

    def test_the_command_sees_nothing_of_the_service_and_no_other_repository(
        self, ctx: ReleaseContext, repository: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgres://x")
        code = "import os; print(os.environ.get('DATABASE_URL'), os.environ.get('GIT_DIR'))"
        commit(repository, "Look around", **{"check.py": code})
        monkeypatch.setenv("GIT_DIR", "/nowhere")
        ctx.do("inspect", inspect_source)

        assert data(run_tests(ctx))["lastLines"] == ["None None"]

    def test_what_the_command_writes_is_not_released(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        commit(repository, "Write", **{"check.py": "open('README.md', 'w').write('changed')"})
        until_approval(ctx)
        (packed,) = (name for name in ctx.artifacts if name.endswith(".gz"))
        with tarfile.open(fileobj=io.BytesIO(ctx.artifacts[packed])) as archive:
            member = archive.extractfile("shop-1.1.0/README.md")
            assert member is not None
            assert member.read() == b"Sell apples"


class TestBuild:
    def test_the_archive_is_an_artifact_with_digest_and_size(self, ctx: ReleaseContext) -> None:
        until_approval(ctx)
        artifact = data(ctx.needs["build"])["artifact"]
        content = ctx.artifacts["shop-1.1.0.tar.gz"]

        assert dict(artifact) == {
            "name": "shop-1.1.0.tar.gz",
            "digest": sha256_bytes(content),
            "size": len(content),
        }
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            assert archive.getnames() == [
                "shop-1.1.0",
                "shop-1.1.0/README.md",
                "shop-1.1.0/check.py",
            ]

    def test_the_same_commit_gives_the_same_bytes(
        self, ctx: ReleaseContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        until_approval(ctx)
        first = ctx.artifacts.pop("shop-1.1.0.tar.gz")
        monkeypatch.setattr("time.time", lambda: 1.0)
        until_approval(ctx)

        assert ctx.artifacts["shop-1.1.0.tar.gz"] == first

    def test_an_emptied_workspace_is_filled_again(
        self, ctx: ReleaseContext, tmp_path: Path, repository: Path
    ) -> None:
        until_approval(ctx)
        digest = data(ctx.needs["build"])["artifact"]["digest"]
        commit(repository, "Later work")
        ctx.workspace = Workspace(dir=tmp_path / "another")

        assert data(build_archive(ctx))["artifact"]["digest"] == digest

    def test_a_commit_that_is_gone_is_a_finding(
        self, ctx: ReleaseContext, tmp_path: Path, repository: Path
    ) -> None:
        until_approval(ctx)
        git(repository, "reset", "--quiet", "--hard", "v1.0.0")
        git(repository, "reflog", "expire", "--expire=now", "--all")
        git(repository, "gc", "--quiet", "--prune=now")
        ctx.workspace = Workspace(dir=tmp_path / "another")

        assert "is no longer in" in str(build_archive(ctx).summary)


class TestEvidence:
    def test_a_person_sees_changes_test_result_and_digest(self, ctx: ReleaseContext) -> None:
        until_approval(ctx)
        seen: Any = evidence_for_approval(ctx)

        assert canonical_json(seen)
        assert seen["changes"]["count"] == 2
        assert seen["test"]["result"] == "passed"
        assert seen["test"]["lastLines"] == ("14 passed",)
        assert seen["artifact"]["digest"].startswith("sha256:")
        assert (seen["round"], seen["previousNote"], seen["push"]) == (1, None, False)

    def test_a_missing_test_command_is_said(self, ctx: ReleaseContext) -> None:
        ctx.params["testCommand"] = ""
        until_approval(ctx)
        seen: Any = evidence_for_approval(ctx)

        assert seen["test"]["result"] == "not run"
        assert seen["test"]["command"] == "no test command given"


class TestAnnounce:
    def test_the_notes_tell_what_where_and_how(self, ctx: ReleaseContext, repository: Path) -> None:
        commit(repository, "Fix <b>[x](y)</b> `z`")
        until_approval(ctx)
        ctx.do("tag", tag_commit)
        outcome = ctx.do("announce", announce_release)
        notes = ctx.artifacts["release-notes.md"].decode()

        assert outcome.summary == "shop 1.1.0 is released."
        assert data(outcome)["notes"]["mediaType"].startswith("text/markdown")
        assert notes.startswith("# shop 1.1.0\n")
        assert data(ctx.needs["build"])["artifact"]["digest"] in notes
        assert r"Fix \<b\>\[x\](y)\</b\> \`z\`" in notes
        assert "## Changes since v1.0.0" in notes
        assert "exited 0." in notes
        assert "not pushed" in notes

    def test_a_step_without_what_it_needs_says_so(self, ctx: ReleaseContext) -> None:
        assert "inspect left nothing" in str(announce_release(ctx).summary)


def test_a_try_leaves_nothing_behind(ctx: ReleaseContext, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx.do("inspect", inspect_source)

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(_steps, "write_archive", broken)
    with pytest.raises(OSError, match="disk full"):
        build_archive(ctx)

    assert [path.name for path in ctx.workspace.dir.iterdir()] == ["repository.git"]
