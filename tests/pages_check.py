"""Check every page of this site: `python -m tests.pages_check [pytest's options]`.

Walks every address as nine roles on a database made for it, and prints what was looked at: headers,
cookies, the token of every write, what reading leaves unchanged, and secrets in any answer, line of
the log, event or message. The same tests are part of the whole.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest

_PLACE = "tests/site/pages"
_ABOUT = {
    "test_headers": "headers, cookies, markup that runs or loads",
    "test_csrf": "the token of every write, reading that changes nothing",
    "test_no_secrets": "secrets in answers, log lines and events",
    "test_no_secrets_sent": "secrets in frames, streams, mail, webhooks, routers",
}


class Table:
    """Counts what pytest reports, by file."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome == "failed":
            name = report.nodeid.partition("::")[0].rpartition("/")[2].removesuffix(".py")
            self.counts[name, report.outcome] += 1

    def told(self) -> str:
        lines = []
        for name in sorted({name for name, _ in self.counts}):
            passed, failed = self.counts[name, "passed"], self.counts[name, "failed"]
            lines.append(f"{passed:>4} right {failed:>3} wrong  {_ABOUT.get(name, name)}")
        return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Run the checks, print the table, return pytest's code."""
    table = Table()
    code = pytest.main(["-q", "--no-header", _PLACE, *arguments], plugins=[table])
    sys.stdout.write(f"\n{table.told()}\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
