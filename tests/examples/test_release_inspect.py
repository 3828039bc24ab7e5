from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

from runs.drivers.context import GraphPosition
from runs.examples import _git
from runs.examples._changes import plain
from runs.examples._steps import (
    inspect_source,
    tag_commit,
)
from runs.kernel.outcomes import kickback
from tests.examples.repositories import ReleaseContext, commit, data, git, until_approval


class TestInspect:
    def test_it_finds_the_commit_and_what_changed_since_the_last_tag(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        found = data(ctx.do("inspect", inspect_source))

        assert found["commit"]["id"] == git(repository, "rev-parse", "HEAD")
        assert found["commit"]["short"] == found["commit"]["id"][:12]
        assert found["changes"]["since"] == "v1.0.0"
        assert found["changes"]["count"] == 2
        assert [row["subject"] for row in found["changes"]["commits"]] == [
            "Sell apples",
            "Add a basket",
        ]
        assert (found["name"], found["tag"], found["tagged"]) == ("shop", "v1.1.0", False)
        assert (found["round"], found["previousNote"]) == (1, None)

    def test_without_a_tag_the_whole_history_is_new(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        git(repository, "tag", "--delete", "v1.0.0")
        found = data(inspect_source(ctx))

        assert (found["changes"]["since"], found["changes"]["count"]) == (None, 3)

    def test_a_named_revision_is_released(self, ctx: ReleaseContext, repository: Path) -> None:
        ctx.params["revision"] = "main~1"
        found = data(inspect_source(ctx))

        assert found["commit"]["subject"] == "Add a basket"
        assert found["changes"]["count"] == 1

    def test_a_commit_on_no_branch_is_found_by_its_id(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        lost = git(repository, "rev-parse", "HEAD")
        git(repository, "reset", "--quiet", "--hard", "HEAD~1")
        git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
        ctx.params["revision"] = lost
        until_approval(ctx)

        assert data(ctx.needs["inspect"])["commit"]["id"] == lost

    def test_a_long_history_is_counted_and_cut(self, ctx: ReleaseContext, repository: Path) -> None:
        stream = "".join(
            f"commit refs/heads/main\ncommitter Ada <a@b> {n} +0000\ndata 2\n{n % 10}\n"
            + ("from refs/heads/main^0\n" if n == 0 else "")
            for n in range(250)
        )
        subprocess.run(
            ["git", "fast-import", "--quiet"], cwd=repository, input=stream.encode(), check=True
        )
        found = data(inspect_source(ctx))["changes"]

        assert (found["count"], len(found["commits"]), found["omitted"]) == (252, 200, 52)

    def test_a_subject_is_one_plain_line(self, ctx: ReleaseContext, repository: Path) -> None:
        commit(repository, "Red \x1b[31m \u202eevil\u202c " + "x" * 400)
        subject = data(inspect_source(ctx))["changes"]["commits"][0]["subject"]

        assert subject.startswith("Red [31m evil x")
        assert len(subject) == 200

    def test_the_note_of_a_no_is_carried_on(self, ctx: ReleaseContext) -> None:
        ctx.last_review = kickback("inspect", "Wait for the fix.")
        ctx.graph = GraphPosition(dag="release", node="inspect", attempt=2, path=())
        found = data(inspect_source(ctx))

        assert (found["round"], found["previousNote"]) == (2, "Wait for the fix.")
        assert "Looking again after a no: Wait for the fix." in ctx.port.lines

    def test_a_new_round_sees_what_was_pushed_in_between(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        before = data(inspect_source(ctx))["commit"]["id"]
        after = commit(repository, "Fix the till")

        assert data(inspect_source(ctx))["commit"]["id"] == after != before

    def test_a_tag_on_another_commit_is_refused_before_anybody_is_asked(
        self, ctx: ReleaseContext, repository: Path
    ) -> None:
        ctx.params["version"] = "v1.0.0"
        outcome = inspect_source(ctx)

        assert outcome.status == "fail"
        assert outcome.revision is not None
        assert outcome.revision.target is None
        assert "v1.0.0 already stands for" in outcome.revision.findings[0].evidence

    def test_no_hook_of_the_clone_runs(self, ctx: ReleaseContext, tmp_path: Path) -> None:
        hooks = tmp_path / "template" / "hooks"
        hooks.mkdir(parents=True)
        for name in ("post-checkout", "pre-push", "reference-transaction", "post-index-change"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
            (hooks / name).chmod(0o755)
        (tmp_path / "gitconfig").write_text(
            f"[init]\n\ttemplateDir = {hooks.parent}\n[core]\n\thooksPath = {hooks}\n"
        )
        until_approval(ctx)
        assert ctx.do("tag", tag_commit).passed

        assert not (tmp_path / "ran").exists()

    def test_a_bare_repository_a_file_url_and_a_bundle_will_do(
        self, ctx: ReleaseContext, repository: Path, tmp_path: Path
    ) -> None:
        bare, bundle = tmp_path / "shop.git", tmp_path / "shop.bundle"
        git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
        git(repository, "bundle", "create", "--quiet", str(bundle), "--all", "HEAD")
        for address in (str(bare), f"file://{bare}", f"{repository}/.git", str(bundle)):
            ctx.params["repository"] = address
            found = inspect_source(ctx)
            assert found.passed, found.summary
            assert data(found)["name"] == "shop"

    def test_an_empty_repository_has_no_commit(self, ctx: ReleaseContext, tmp_path: Path) -> None:
        git(tmp_path, "init", "--quiet", "empty")
        ctx.params["repository"] = str(tmp_path / "empty")

        assert "There is no commit at HEAD" in str(inspect_source(ctx).summary)

    def test_what_is_no_repository_is_refused_in_gits_words(
        self, ctx: ReleaseContext, tmp_path: Path
    ) -> None:
        ctx.params["repository"] = str(tmp_path)
        summary = str(inspect_source(ctx).summary)

        assert summary.startswith(f"Cloning {tmp_path} failed. git says: fatal:")
        assert not (ctx.clone).exists()

    def test_a_cancelled_run_aborts_the_step(self, ctx: ReleaseContext) -> None:
        ctx.signal.set()
        assert inspect_source(ctx).status == "aborted"

    def test_a_version_that_git_takes_for_a_lock_is_refused(self, ctx: ReleaseContext) -> None:
        ctx.params["version"] = "1.lock"
        assert "Naming a tag v1.lock failed" in str(inspect_source(ctx).summary)

    def test_a_test_command_that_wants_a_shell_is_refused_at_once(
        self, ctx: ReleaseContext
    ) -> None:
        ctx.params["testCommand"] = "make test && make lint"
        outcome = inspect_source(ctx)

        assert outcome.status == "fail"
        assert "testCommand" in str(outcome.summary)
        assert not ctx.workspace.dir.exists()


def test_plain_keeps_words_of_every_language() -> None:
    assert plain("  Füge\tこんにちは 你好 hinzu\n") == "Füge こんにちは 你好 hinzu"


def test_an_untrusted_owner_is_explained() -> None:
    result = SimpleNamespace(
        spawn_error=None,
        timed_out=False,
        stderr="fatal: detected dubious ownership in repository at '/x'",
        stdout="",
    )
    assert "safe.directory" in _git.complaint(result)  # type: ignore[arg-type]  # the fields used
