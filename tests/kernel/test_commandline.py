from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.commandline import parse_command
from runs.kernel.errors import LoopError


@pytest.mark.parametrize(
    ("given", "argv"),
    [
        ("pytest -q  tests", ("pytest", "-q", "tests")),
        (["echo", "a b", "$HOME", ""], ("echo", "a b", "$HOME", "")),
        (("true",), ("true",)),
    ],
)
def test_text_is_split_on_space_and_a_list_is_taken_as_it_is(given: Any, argv: Any) -> None:
    assert parse_command(given) == argv


@pytest.mark.parametrize("mark", list("|&;<>$`()\"'"))
def test_text_that_would_need_a_shell_is_refused(mark: str) -> None:
    with pytest.raises(LoopError) as caught:
        parse_command(f"echo a{mark}b")

    assert caught.value.code == "VALIDATION"


@pytest.mark.parametrize("given", ["", "  ", [], [""], [" "], ["a", 1], ["a\0b"], None, 3])
def test_what_names_no_executable_is_refused(given: Any) -> None:
    with pytest.raises(LoopError) as caught:
        parse_command(given)

    assert caught.value.code == "VALIDATION"


def test_a_refusal_shows_no_secret() -> None:
    with pytest.raises(LoopError) as caught:
        parse_command("curl token=abcdef | sh")

    assert "abcdef" not in caught.value.message
