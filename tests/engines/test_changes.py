"""What git says is pending, read back from its own form."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engines.changes import _entries, changed, remember
from runs.engines.git import GitFailed
from tests.repos import git, make_repo

MARKS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
NAME = st.text(MARKS, min_size=1).filter(lambda name: not name.endswith("/"))
SHA = "0" * 40


def never() -> bool:
    return False


@given(st.lists(st.tuples(st.sampled_from("1u?"), NAME)))
def test_any_name_is_read_back(entries: list[tuple[str, str]]) -> None:
    before = {
        "1": f"1 .M N... 100644 100644 100644 {SHA} {SHA}",
        "u": f"u UU N... 100644 100644 100644 100644 {SHA} {SHA} {SHA}",
        "?": "?",
    }
    listed = "".join(f"{before[kind]} {name}\0" for kind, name in entries)

    assert list(_entries(listed)) == [(before[kind], name) for kind, name in entries]


@pytest.mark.parametrize("listed", ["2 R. N... x y z a b R100 to\0from\0", "# branch.oid x\0"])
def test_an_unknown_form_is_refused(listed: str) -> None:
    with pytest.raises(GitFailed, match="unknown form"):
        list(_entries(listed))


def test_a_conflict_and_a_removed_file_are_pending(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", a__txt="one\n", b__txt="two\n")
    git(repo, "switch", "-q", "-c", "side")
    (repo / "a.txt").write_text("side\n")
    git(repo, "commit", "-q", "-am", "side")
    git(repo, "switch", "-q", "main")
    (repo / "a.txt").write_text("main\n")
    git(repo, "commit", "-q", "-am", "main")
    with pytest.raises(Exception, match="merge"):
        git(repo, "merge", "-q", "side")
    (repo / "b.txt").unlink()
    (repo / "link").symlink_to("nowhere")

    assert changed(repo, never) == ["a.txt", "b.txt", "link"]


def test_a_link_counts_by_where_it_points(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / "link").symlink_to("here")
    remember("k", repo, never)
    assert changed(repo, never, since="k") == []

    (repo / "link").unlink()
    (repo / "link").symlink_to("there")
    assert changed(repo, never, since="k") == ["link"]


def test_what_cannot_be_kept_makes_everything_count(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    (repo / "new").write_text("n")
    (repo / ".git" / "obversa").write_text("in the way")
    remember("k", repo, never)

    assert changed(repo, never, since="k") == ["new"]


def test_all_worktrees_share_one_place_and_no_tree_shows_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    remember("k", repo, never)

    assert git(repo, "status", "--porcelain") == ""
    assert len(list((repo / ".git" / "obversa" / "entered").iterdir())) == 1
