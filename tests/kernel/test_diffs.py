"""A proposed change in its three shapes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from runs.kernel import diffs
from runs.kernel.diffs import Diff, FileDiff, diff_of

TEN = "".join(f"line {n}\n" for n in range(1, 11))
UNIFIED = """\
diff --git a/src/a.py b/src/a.py
index 83db48f..bf269f4 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,3 +10,4 @@ def work():
 ten
-eleven
+new eleven
+--- not a header
 twelve
@@ -30,1 +31,1 @@
-thirty
\\ No newline at end of file
+thirty
diff --git a/old.txt b/new.txt
similarity index 100%
rename from old.txt
rename to new.txt
diff --git a/gone.md b/gone.md
deleted file mode 100644
--- a/gone.md
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/pic.png b/pic.png
new file mode 100644
Binary files /dev/null and b/pic.png differ
"""


def change(value: Any) -> Diff:
    found = diff_of(value)
    assert found is not None
    return found


def only(value: Any) -> FileDiff:
    (file,) = change(value).files
    return file


def shown(file: FileDiff) -> list[str]:
    sign = {"same": " ", "old": "-", "new": "+"}
    return [
        sign[line.kind] + line.text
        for chunk in file.chunks
        if not chunk.folded
        for line in chunk.lines
    ]


def test_texts_before_and_after_show_what_changed_and_fold_the_rest() -> None:
    new = TEN.replace("line 5\n", "line five\n")
    file = only({"a.txt": {"old": TEN, "new": new}})
    assert (file.status, file.added, file.removed) == ("changed", 1, 1)
    assert shown(file)[4:6] == ["-line 5", "+line five"]
    folded = [len(chunk.lines) for chunk in file.chunks if chunk.folded]
    assert folded == [2]
    assert len(shown(file)) == 9


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"old": None, "new": "a\n"}, "added"),
        ({"new": "a\n"}, "added"),
        ({"old": "a\n", "new": None}, "removed"),
        ({"old": "a\n", "new": "a\n"}, "same"),
        ("a\n", "file"),
    ],
)
def test_a_file_says_what_became_of_it(given: Any, status: str) -> None:
    assert only({"a": given}).status == status


def test_a_file_that_did_not_change_is_folded_whole() -> None:
    assert [chunk.folded for chunk in only({"a": {"old": TEN, "new": TEN}}).chunks] == [True]


def test_files_as_they_are_have_every_line_and_no_change() -> None:
    file = only({"a.md": "one\ntwo\n"})
    assert shown(file) == [" one", " two"]
    assert (file.added, file.removed) == (0, 0)
    assert file.has_line("new", 2)
    assert not file.has_line("old", 1)


def test_a_unified_diff_is_read_as_git_writes_it() -> None:
    first, renamed, gone, picture = change(UNIFIED).files
    assert (first.path, first.status, first.added, first.removed) == ("src/a.py", "changed", 3, 2)
    assert shown(first) == [
        " ten",
        "-eleven",
        "+new eleven",
        "+--- not a header",
        " twelve",
        "-thirty",
        "+thirty",
    ]
    assert [chunk.hidden for chunk in first.chunks if chunk.folded] == [9, 17]
    assert first.chunks[0].heading == "def work():"
    assert [line.ends for line in first.chunks[-1].lines] == [False, True]
    assert (renamed.path, renamed.old_path, renamed.status) == ("new.txt", "old.txt", "renamed")
    assert (gone.path, gone.status) == ("gone.md", "removed")
    assert (picture.path, picture.status) == ("pic.png", "binary")
    assert first.has_line("old", 11)
    assert first.has_line("new", 31)
    assert not first.has_line("new", 30)
    assert not first.has_line("old", 1)


def test_a_plain_unified_diff_needs_no_git() -> None:
    text = "--- a.txt\t2026-01-01\n+++ a.txt\t2026-01-02\n@@ -1 +1 @@\n-x\n+y\n"
    two = text + text.replace("a.txt", "b.txt")
    assert [file.path for file in change(two).files] == ["a.txt", "b.txt"]


def test_what_git_itself_writes_is_read(tmp_path: Path) -> None:
    def git(*given: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *who, *given]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True
        ).stdout.decode()

    git("init", "-q")
    names = ["plain.txt", "with space.txt", 'quo"te.txt', "ümlaut.txt"]
    for name in names:
        (tmp_path / name).write_text("one\ntwo\nthree\n")
    git("add", ".")
    git("commit", "-qm", "first")
    for name in names:
        (tmp_path / name).write_text("one\nzwei\nthree\nfour")
    found = change(git("diff"))
    assert sorted(file.path for file in found.files) == sorted(names)
    for file in found.files:
        assert shown(file) == [" one", "-two", "+zwei", " three", "+four"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "just words",
        "--- a title\nwith words",
        {},
        [],
        3,
        {"a": 1},
        {"a": {"old": 1, "new": "x"}},
        {"a": {"before": "x"}},
        {"a": {}},
        {"a": "x" * (diffs.MAX_TEXT + 1)},
    ],
)
def test_anything_else_is_no_change(value: Any) -> None:
    assert diff_of(value) is None


@pytest.mark.parametrize(
    "text",
    [
        "diff --git a/x b/x\n@@ -1,5 +1,5 @@\n-one",
        "diff --git a/x b/x\n--- a/x",
        "diff --git \n@@ -1 +1 @@\nnothing",
        "--- a\n+++ b\n@@ -999999999,9 +1 @@\n",
        "diff --git a/x b/x\n@@ -1 +1 @@\n\\ No newline",
    ],
)
def test_a_broken_diff_shows_what_it_holds(text: str) -> None:
    assert all(isinstance(file, FileDiff) for file in change(text).files)


def test_five_hundred_files_are_shown_and_the_others_counted() -> None:
    many = {f"f{n}.txt": {"old": "a\n", "new": "b\n"} for n in range(503)}
    found = change(many)
    assert (len(found.files), found.omitted) == (500, 3)
    text = "".join(f"--- f{n}\n+++ f{n}\n@@ -1 +1 @@\n-a\n+b\n" for n in range(501))
    assert change(text).omitted == 1


def test_a_material_says_where_its_change_is() -> None:
    assert diffs.pointer_of({"about": 1, "diff": UNIFIED}) == "/diff"
    assert diffs.pointer_of({"changes": {"a": {"old": "", "new": "x"}}}) == "/changes"
    assert diffs.pointer_of({"files": {"a": "x"}}) == "/files"
    assert diffs.pointer_of({"diff": "no diff", "files": 3}) == ""
    assert diffs.pointer_of("diff --git a/x b/x\n") == ""


def test_a_pointer_finds_its_place_or_nothing() -> None:
    value = {"material": {"a/b": {"~": 1}}}
    assert diffs.at(value, "/material/a~1b/~0") == 1
    for pointer in ("", "material", "/material/x", "/material/a~1b/~0/more", 3, None):
        assert diffs.at(value, pointer) is None
