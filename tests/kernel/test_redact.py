from __future__ import annotations

import pytest

from runs.kernel.jsonable import JSONValue
from runs.kernel.redact import redact, redact_json


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefgh12",
        "me@example.org",
        "token=abc",
        "access_token: abc",
        "password = hunter2",
        'password="two words"',
        "Authorization: Bearer abc.def",
        "api key: xyz",
        "API-KEY=xyz",
        "bearer=abc",
        '{"secret": "abc"}',
    ],
)
def test_what_looks_like_a_secret_is_replaced(secret: str) -> None:
    shown = redact(f"before {secret} after")

    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "[redacted]" in shown
    for part in ("abc", "hunter2", "two words", "xyz", "sk-", "example"):
        assert part not in shown


@pytest.mark.parametrize("text", ["sk-short", "a token of thanks", "no secret here", "x @ y", ""])
def test_plain_words_stay(text: str) -> None:
    assert redact(text) == text


def test_every_text_inside_a_value_is_looked_at() -> None:
    value: JSONValue = {"note": ["token=abc", 1, None], "ok": True}

    assert redact_json(value) == {"note": ["[redacted]", 1, None], "ok": True}
