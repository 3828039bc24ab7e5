from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runs.examples._git import Git
from runs.examples._source import Refused, Request


class TestParameters:
    @pytest.mark.parametrize(
        "repository",
        [
            "",
            "--upload-pack=touch /tmp/x",
            "ext::sh -c id",
            "fd::17",
            "transport::address",
            "ftp://host/x",
            "git://host/x.git",
            "http://host/x.git",
            "javascript://x",
            "https://ada:secret@host/x.git",
            "https://token@host/x.git",
            "ssh://-oProxyCommand=id/x",
            "-oProxyCommand=id:x",
            "git@-oProxyCommand=id:x",
            "https:///x",
            "https://[::1/x",
            "file://elsewhere/x",
            "file:///no/such/place",
            "/no/such/place",
            "~no-such-user/x",
            "a" * 5000,
            "a\nb",
        ],
    )
    def test_a_repository_that_is_no_plain_path_or_address_is_refused(
        self, repository: str
    ) -> None:
        with pytest.raises(Refused):
            Request.read({"repository": repository, "version": "1.0"})

    @pytest.mark.parametrize(
        ("repository", "name"),
        [
            ("https://host/team/shop.git", "shop"),
            ("git@host:team/shop.git", "shop"),
            ("host:shop", "shop"),
            ("ssh://git@host:22/team/shop/", "shop"),
            ("https://host/", "host"),
            ("https://host/a%20b c", "a-20b-c"),
        ],
    )
    def test_an_address_gives_its_name(self, repository: str, name: str) -> None:
        assert Request.read({"repository": repository, "version": "1.0"}).name == name

    @pytest.mark.parametrize(
        ("version", "tag"),
        [
            ("2.4.0", "v2.4.0"),
            ("v2.4.0", "v2.4.0"),
            ("2.4.0-rc.1", "v2.4.0-rc.1"),
            ("1.0rc1", "v1.0rc1"),
            ("2024.11.30+build.5", "v2024.11.30+build.5"),
        ],
    )
    def test_a_version_gives_its_tag(self, version: str, tag: str) -> None:
        assert Request.read({"repository": "host:x", "version": version}).tag == tag

    @pytest.mark.parametrize(
        "version", ["", "-1", "1..2", "1 0", "latest", "1/2", "../1", "1.", "9" * 65, 7]
    )
    def test_another_version_is_refused(self, version: object) -> None:
        with pytest.raises(Refused, match="version"):
            Request.read({"repository": "host:x", "version": version})

    @pytest.mark.parametrize(
        "revision", ["-x", "a..b", "main:README", "+main", "^main", "a b", "m*", "@{1}", "a\x07"]
    )
    def test_a_revision_that_is_more_than_one_commit_is_refused(self, revision: str) -> None:
        with pytest.raises(Refused, match="revision"):
            Request.read({"repository": "host:x", "version": "1", "revision": revision})


class TestRoots:
    def read(self, repository: str) -> str:
        return Request.read({"repository": repository, "version": "1.0"}).repository

    @pytest.mark.parametrize(
        ("roots", "repository"),
        [
            ("https://git.example.org/team/", "https://git.example.org/team/shop.git"),
            ("https://git.example.org/team", "https://GIT.example.org/team/shop"),
            ("https://git.example.org", "https://git.example.org/any/shop"),
            ("http://intranet:8080/", "http://intranet:8080/shop"),
            ("/srv/git, ssh://git@host/team", "git@host:team/shop.git"),
            ("ssh://host/", "ssh://git@host/team/shop.git"),
        ],
    )
    def test_what_lies_below_a_root_is_taken(
        self, monkeypatch: pytest.MonkeyPatch, roots: str, repository: str
    ) -> None:
        monkeypatch.setenv("OBVERSA_RELEASE_ROOTS", roots)

        assert self.read(repository) == repository

    @pytest.mark.parametrize(
        "repository",
        [
            "https://elsewhere.org/team/shop.git",
            "https://git.example.org.evil.org/team/shop.git",
            "https://git.example.org/teams/shop.git",
            "https://git.example.org/other/shop.git",
            "https://git.example.org/team/../other/shop.git",
            "https://git.example.org/team/%2e%2e/other/shop.git",
            "https://git.example.org:8443/team/shop.git",
            "http://git.example.org/team/shop.git",
            "ssh://git.example.org/team/shop.git",
            "git@git.example.org:team/shop.git",
            "/etc",
            "file:///etc",
            ".",
        ],
    )
    def test_what_lies_outside_is_refused_and_the_roots_are_named(
        self, monkeypatch: pytest.MonkeyPatch, repository: str
    ) -> None:
        monkeypatch.setenv("OBVERSA_RELEASE_ROOTS", "https://git.example.org/team/")

        with pytest.raises(Refused, match=r"https://git\.example\.org/team/"):
            self.read(repository)

    def test_a_folder_is_a_root_and_a_link_out_of_it_leads_nowhere(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        inside, outside = tmp_path / "git" / "shop", tmp_path / "secret"
        for folder in (inside, outside, tmp_path / "git-other"):
            folder.mkdir(parents=True)
        (tmp_path / "git" / "link").symlink_to(outside)
        monkeypatch.setenv("OBVERSA_RELEASE_ROOTS", str(tmp_path / "git"))

        assert self.read(str(inside)) == str(inside)
        assert self.read(f"file://{inside}") == f"file://{inside}"
        for refused in (
            "git/link",
            "git/../secret",
            "secret",
            "git-other",
            "git/shop/../../secret",
        ):
            for form in (f"{tmp_path}/{refused}", f"file://{tmp_path}/{refused}"):
                with pytest.raises(Refused):
                    self.read(form)

    def test_git_is_asked_to_ask_nobody(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        script = tmp_path / "said.py"
        script.write_text("import os, sys; open(sys.argv[1], 'w').write(repr(sys.argv[2:]))")
        said = tmp_path / "said"
        monkeypatch.setenv("GIT_SSH_COMMAND", f"{sys.executable} {script} {said}")

        result = Git(tmp_path, lambda: False).attempt("ls-remote", "ssh://host/shop.git")

        assert result.exit_code != 0
        assert "-oBatchMode=yes" in said.read_text()

    def test_git_follows_no_host_out_of_the_roots(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        git = Git(tmp_path, lambda: False)
        monkeypatch.setenv("OBVERSA_RELEASE_ROOTS", "https://git.example.org/")

        assert git.attempt("config", "http.followRedirects").stdout.strip() == "false"
        monkeypatch.delenv("OBVERSA_RELEASE_ROOTS")
        assert git.attempt("config", "http.followRedirects").stdout.strip() == ""
