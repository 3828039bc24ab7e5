from __future__ import annotations

import pytest

from runs.kernel.errors import EngineError
from runs.kernel.seats import model_identity


@pytest.mark.parametrize(
    ("text", "provider", "family"),
    [
        ("claude-sonnet-4-5", None, "claude"),
        ("Anthropic/Claude-Opus", "anthropic", "claude"),
        ("gpt5", None, "gpt5"),
        ("openrouter/google/gemini-2", "openrouter", "gemini"),
    ],
)
def test_e25_a_model_has_a_family(text: str, provider: str | None, family: str) -> None:
    assert model_identity(text) == (provider, family)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "a/",
        "/a",
        "gpt 5.4",
        "unknown",
        "a/unknown-2",
        "-x",
        "a/b/c",
        "openrouter/auto",
        " a",
    ],
)
def test_e25_e26_what_names_no_model_is_refused(text: str) -> None:
    with pytest.raises(EngineError) as refused:
        model_identity(text)

    assert refused.value.kind == "invalid-config"
