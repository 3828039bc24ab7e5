from __future__ import annotations

import pytest

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
