from __future__ import annotations

import os

import pytest

from runs.engines.scrub import Scrubber, looks_secret, scrub, secret_values


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("key sk-abcdefgh12345 here", "key [redacted] here"),
        ("contact me@x.io, token=abc", "contact [redacted], [redacted]"),
        ("API key: hunter2", "[redacted]"),
        ("Authorization: Bearer abc.def", "[redacted]"),
        ('{"password": "two words"}', '{"[redacted]}'),
        ("GITHUB_TOKEN=ghx", "GITHUB_[redacted]"),
        ("push with ghp_0123456789abcdef failed", "push with [redacted] failed"),
        ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
        ("https://bob:pw@host/x", "https://[redacted]@host/x"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted]\nb",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMII and the end is missing", "[redacted]"),
    ],
)
def test_text_shaped_like_a_secret_is_replaced(text: str, clean: str) -> None:
    assert scrub(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "14 passed in 2.1s",
        "sk-short",
        "the tokens were counted",
        "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05",
        "git@",
        "basic understanding of everything",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert scrub(text) == text


def test_the_longest_value_is_replaced_first() -> None:
    assert scrub("x abcdef y abc", ["abc", "abcdef"]) == "x [redacted] y [redacted]"


def test_a_value_is_taken_verbatim() -> None:
    assert scrub("a.c abc", ["a.c"]) == "[redacted] abc"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("GITHUB_TOKEN", True),
        ("OBVERSA_SECRET_KEY", True),
        ("db_password", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("PATH", False),
        ("SSH_AUTH_SOCK", False),
        ("TOKEN_FILE", False),
        ("KEYBOARD", False),
        ("MONKEY", False),
        ("PWD", False),
        ("OLDPWD", False),
        ("DB_PWD", True),
        ("", False),
    ],
)
def test_a_variable_is_secret_by_its_name(name: str, secret: bool) -> None:
    assert looks_secret(name) is secret


def test_named_and_injected_values_are_secret_and_short_ones_are_not() -> None:
    environment = {"API_TOKEN": "long-enough", "DB_PASSWORD": "test", "HOME": "/home/someone"}
    injected = {"CHANNEL": "nightly-7", "CI": "1"}

    assert sorted(secret_values(environment, injected)) == ["long-enough", "nightly-7"]


def test_a_variable_that_is_set_changed_or_taken_away_is_seen_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known() -> set[str]:
        return set(secret_values(os.environ)) & {"first-value", "second-value"}

    assert known() == known() == set()
    monkeypatch.setenv("TEST_SCRUB_TOKEN", "first-value")
    assert known() == known() == {"first-value"}
    monkeypatch.setenv("TEST_SCRUB_TOKEN", "second-value")
    assert known() == {"second-value"}
    monkeypatch.delenv("TEST_SCRUB_TOKEN")
    assert known() == set()


@pytest.mark.parametrize("piece", ["a", "a.", "a@", "token", "bearer ", "sk-", "eyJ", "://", "'"])
def test_a_long_stream_of_half_matches_comes_to_an_end(piece: str) -> None:
    text = piece * (500_000 // len(piece))

    assert len(scrub(text)) > 0


def test_what_a_step_hands_on_keeps_addresses_and_loses_keys_at_every_depth() -> None:
    given = {"to": "bob@x.io", "deep": [{"note": "password: hunter2"}, 3, None, ("sk-abcdefgh12",)]}
    clean = Scrubber(["s3cr3t-value"]).json({**given, "s3cr3t-value": "is s3cr3t-value"})

    assert clean == {
        "to": "bob@x.io",
        "deep": [{"note": "[redacted]"}, 3, None, ["[redacted]"]],
        "[redacted]": "is [redacted]",
    }
