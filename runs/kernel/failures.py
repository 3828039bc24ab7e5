"""How an engine failed, read from what it raised (engines.md E17-E24)."""

from __future__ import annotations

import re
from typing import Final

from runs.kernel.errors import EngineError, LoopError

LANE_DEAD_FAILURES: Final = frozenset(
    {"auth", "billing", "missing-cli", "model-unavailable", "invalid-config", "quota"}
)
_READ: Final = 4_000
_OF_CODE: Final = {
    "RATE_LIMIT": "rate-limit",
    "QUOTA": "quota",
    "TIMEOUT": "timeout",
    "ABORTED": "aborted",
    "CONFIG": "invalid-config",
}
# The first that matches wins: what lasts before what passes. Numbers stand alone.
_SAYS: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "invalid-config",
            (
                r"(?:invalid|unsupported) [^\n]{0,80}"
                r"(?:supported|valid|allowed) (?:values|options|levels)"
                r"|(?:invalid|bad|cannot (?:load|parse)|failed to (?:load|parse)) (?:the )?config"
            ),
        ),
        (
            "billing",
            (
                r"credit balance|\bbilling\b|payment required|purchase more|insufficient funds"
                r"|(?<!\d)402(?!\d)"
            ),
        ),
        (
            "auth",
            (
                r"not authenticated|unauthori[sz]ed|invalid (?:x-|api[ -]?)key|invalid api key"
                r"|authentication[ _](?:error|failed)|expired (?:token|credentials)|\blogin\b"
                r"|(?:token|credentials) (?:has|have|is|are)? ?expired|(?<!\d)401(?!\d)"
            ),
        ),
        (
            "missing-cli",
            (
                r"\benoent\b|command not found|not recognized as an internal"
                r"|no such file or directory"
            ),
        ),
        (
            "model-unavailable",
            (
                r"model [^\n]{0,80}(?:not found|unavailable|does not exist|unknown)"
                r"|(?:no such|unknown) model|(?<!\d)404(?!\d)"
            ),
        ),
        (
            "quota",
            r"monthly (?:usage )?(?:limit|quota|allowance)|out of credits|insufficient credits",
        ),
        (
            "rate-limit",
            (
                r"rate[ -]?limit|too many requests|\boverloaded\b|(?<!\d)(?:429|529)(?!\d)"
                r"|\bquota\b|\ballowance\b|(?:usage|session) limit"
            ),
        ),
        ("timeout", r"timed out|\btime-?out\b|deadline exceeded"),
        (
            "transient",
            (
                r"internal server error|bad gateway|service unavailable|gateway timeout"
                r"|(?<!\d)5\d\d(?!\d)"
            ),
        ),
    )
)


def classify_engine_failure(error: BaseException) -> str:
    """One of the eleven kinds; `unknown` where nothing tells (engines.md E20-E22)."""
    if isinstance(error, EngineError):
        return error.kind
    if isinstance(error, LoopError) and error.code in _OF_CODE:
        return _OF_CODE[error.code]
    if isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError):
        return "missing-cli"
    if type(error).__name__ == "CancelledError":
        return "aborted"
    if isinstance(error, TimeoutError):
        return "timeout"
    said = f"{error}\n{error.__cause__ or ''}"[:_READ].lower()
    return next((kind for kind, pattern in _SAYS if pattern.search(said)), "unknown")
