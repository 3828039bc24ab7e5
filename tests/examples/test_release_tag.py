from __future__ import annotations

from pathlib import Path

import pytest

from runs.drivers.context import Workspace
from runs.examples._steps import (
    inspect_source,
    tag_commit,
)
from tests.examples.repositories import ReleaseContext, data, git, until_approval


class TestTag:
    @pytest.fixture
    def remote(self, ctx: ReleaseContext, repository: Path, tmp_path: Path) -> Path:
        bare = tmp_path / "remote" / "shop.git"
        git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
        ctx.params.update(repository=str(bare), push=True)
        return bare

    def test_the_clone_gets_an_annotated_tag(self, ctx: ReleaseContext, repository: Path) -> None:
        until_approval(ctx)
        outcome = ctx.do("tag", tag_commit)
        clone = ctx.clone

        assert outcome.passed
        assert data(outcome)["made"] is True
        assert git(clone, "cat-file", "-t", "v1.1.0") == "tag"
        assert git(clone, "rev-parse", "v1.1.0^{commit}") == data(outcome)["commit"]
        assert "tagger Obversa <release@obversa.invalid>" in git(clone, "cat-file", "-p", "v1.1.0")
        assert git(repository, "tag") == "v1.0.0"

    def test_twice_is_once(self, ctx: ReleaseContext, remote: Path) -> None:
        until_approval(ctx)
        first = ctx.do("tag", tag_commit)
        pushed = git(remote, "rev-parse", "v1.1.0")
        second = ctx.do("tag", tag_commit)

        assert (data(first)["made"], data(second)["made"]) == (True, False)
        assert data(second)["pushed"] is True
        assert "was pushed already" in str(second.summary)
        assert git(remote, "rev-parse", "v1.1.0") == pushed

    def test_a_pushed_tag_is_found_after_the_workspace_is_lost(
        self, ctx: ReleaseContext, remote: Path, tmp_path: Path
    ) -> None:
        until_approval(ctx)
        ctx.do("tag", tag_commit)
        ctx.workspace = Workspace(dir=tmp_path / "another")

        assert tag_commit(ctx).passed

    def test_a_worker_that_died_between_tag_and_push_is_carried_on(
        self, ctx: ReleaseContext, remote: Path
    ) -> None:
        until_approval(ctx)
        ctx.params["push"] = False
        ctx.do("tag", tag_commit)
        ctx.params["push"] = True
        outcome = ctx.do("tag", tag_commit)

        assert (data(outcome)["made"], outcome.passed) == (False, True)
        assert git(remote, "cat-file", "-t", "v1.1.0") == "tag"

    def test_another_runs_clone_is_not_taken_for_this_ones(
        self, ctx: ReleaseContext, remote: Path, tmp_path: Path
    ) -> None:
        until_approval(ctx)
        fork = tmp_path / "fork.git"
        git(tmp_path, "clone", "--quiet", "--bare", str(remote), str(fork))
        ctx.params["repository"] = str(fork)
        ctx.do("tag", tag_commit)

        assert git(fork, "tag") == "v1.0.0\nv1.1.0"
        assert git(remote, "tag") == "v1.0.0"

    def test_only_the_tag_is_pushed(self, ctx: ReleaseContext, remote: Path) -> None:
        until_approval(ctx)
        before = git(remote, "for-each-ref")
        ctx.do("tag", tag_commit)

        added = set(git(remote, "for-each-ref").splitlines()) - set(before.splitlines())
        assert [line.split("\t")[1] for line in added] == ["refs/tags/v1.1.0"]

    def test_a_tag_somebody_else_pushed_on_another_commit_fails(
        self, ctx: ReleaseContext, remote: Path
    ) -> None:
        until_approval(ctx)
        git(remote, "tag", "--annotate", "--message=Mine", "v1.1.0", "v1.0.0")
        outcome = tag_commit(ctx)

        assert outcome.status == "fail"
        assert outcome.revision is not None
        assert "The tag v1.1.0 already stands for" in outcome.revision.findings[0].evidence

    def test_a_light_tag_of_that_name_fails(self, ctx: ReleaseContext, repository: Path) -> None:
        git(repository, "tag", "v1.1.0")
        assert "not an annotated one" in str(inspect_source(ctx).summary)

    def test_a_remote_that_says_no_is_a_finding(self, ctx: ReleaseContext, remote: Path) -> None:
        until_approval(ctx)
        hook = remote / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho tags are frozen\nexit 1\n")
        hook.chmod(0o755)
        outcome = tag_commit(ctx)

        assert outcome.status == "fail"
        assert "tags are frozen" in str(outcome.summary)

    def test_the_identity_of_the_worker_is_used_when_it_has_one(
        self, ctx: ReleaseContext, tmp_path: Path
    ) -> None:
        (tmp_path / "gitconfig").write_text("[user]\n\tname = Bot\n\temail = bot@example.org\n")
        until_approval(ctx)
        ctx.do("tag", tag_commit)

        clone = ctx.clone
        assert "tagger Bot <bot@example.org>" in git(clone, "cat-file", "-p", "v1.1.0")
