from __future__ import annotations

import pytest

from runs.plaintext import first_line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Ban the user spam_bot_11?", "Ban the user spam_bot_11?"),
        ("Approve the **migration** of *shop*?", "Approve the migration of shop?"),
        ("Approve __this__ and _that_one_?", "Approve this and that_one?"),
        ("**bold *inner* words**", "bold inner words"),
        ("~~No~~ [yes](https://example.org/a_b_c)", "No yes"),
        ("2 * 3 * 4 is 24", "2 * 3 * 4 is 24"),
        ("Run `a * b` and `__init__`", "Run a * b and __init__"),
        ("\n\n## Head\nmore", "Head"),
        ("> quoted", "quoted"),
        ("- an item", "an item"),
        ("***", "***"),
        (r"Publish \<b\> \*now\* as \_x\_", "Publish <b> *now* as _x_"),
        (r"\`no code\`, `a\*b`, \\ and C:\dir", r"`no code`, a\*b, \ and C:\dir"),
        (r"\# no head", "# no head"),
    ],
)
def test_a_line_is_read_as_its_reader_would_say_it(text: str, told: str) -> None:
    assert first_line(text) == told


def test_a_long_line_is_cut_with_a_sign() -> None:
    assert first_line("x" * 50, 10) == "x" * 9 + "\u2026"
