"""The table of a soak, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.soak.judge import Judgement
    from tests.soak.ledger import Ledger
    from tests.soak.play import Options

WIDE = 52


def table(options: Options, judgement: Judgement, ledger: Ledger) -> str:
    """All figures, one to a line; below them what was wrong, with its names."""
    title = f"Soak of {options.minutes:g} minutes, broker {options.broker}, bell redis"
    lines = [
        f"{title}, {options.people} people",
        "",
        *(_line(name, figure) for name, figure in judgement.figures.items()),
        "",
        *(_line(name, figure) for name, figure in judgement.wrong.items()),
        "",
        "process".ljust(16) + "".join(how.rjust(8) for how in ("KILL", "TERM", "STOP")),
    ]
    for name in sorted({name for name, _ in ledger.kills}):
        counts = (ledger.kills[name, how] for how in ("KILL", "TERM", "STOP"))
        lines.append(name.ljust(16) + "".join(str(count).rjust(8) for count in counts))
    lines += ["", "replies"]
    for what in sorted({what for what, _ in ledger.replies}):
        counts_of = {s: count for (one, s), count in ledger.replies.items() if one == what}
        found = "  ".join(f"{status}: {counts_of[status]}" for status in sorted(counts_of))
        lines.append(f"  {what.ljust(24)}{found}")
    lines += ["", *(f"noted: {text}" for text in ledger.told)]
    lines += [f"wrong: {text}" for text in judgement.told]
    return "\n".join(lines).rstrip()


def _line(name: str, figure: float | str) -> str:
    return f"{name.ljust(WIDE)}{str(figure).rjust(10)}"
