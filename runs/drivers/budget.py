"""The token budget of a run: what may still be spent, also by calls that are under way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from runs.kernel.errors import LoopError
from runs.kernel.spending import Spent

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Input and output tokens a record may use over all its sessions (runs.md R256, R266).

    `headroom` is what one call may need; `soft` warns instead of refusing.
    """

    limit: int
    headroom: int | None = None
    soft: bool = False

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """A number of tokens, or a mapping of the names above; raises ValueError."""
        if given is None:
            return None
        names = {"limit", "headroom", "soft"}
        made = dict(given) if isinstance(given, Mapping) else {"limit": given}
        if unknown := sorted(map(str, set(made) - names)):
            raise ValueError(f"budget has unknown keys: {', '.join(unknown)}.")
        for name in ("limit", *(["headroom"] if made.get("headroom") is not None else [])):
            value = made.get(name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"the {name} of a budget is a whole number of tokens.")
        return cls(limit=made["limit"], headroom=made.get("headroom"), soft=bool(made.get("soft")))


class Purse:
    """Lets calls begin while the budget has room for them.

    What a call may use at most is set aside while it runs, all there is when nobody can tell; a
    call that finds no room beside those waits for them, so ten at once never spend the same
    tokens (R269).
    """

    def __init__(self, budget: Budget, spent: Callable[[], Spent]) -> None:
        self._budget = budget
        self._spent = spent
        self._room = threading.Condition()
        self._set_aside = 0

    @contextmanager
    def call(self, at_most: int | None) -> Iterator[None]:
        """A call that uses `at_most` tokens, if that is known; raises LoopError BUDGET."""
        if self._budget.soft:
            self._warn()
            yield
            return
        known = at_most if self._budget.headroom is None else self._budget.headroom
        need = self._budget.limit if known is None else known
        with self._room:
            self._room.wait_for(lambda: not self._set_aside or self._over(self._set_aside) < 0)
            self._refuse()
            self._set_aside += need
        try:
            yield
        finally:
            with self._room:
                self._set_aside -= need
                self._room.notify_all()

    def told(self) -> dict[str, int]:
        """What `RunResult.budget` says."""
        used = tokens(self._spent())
        limit = self._budget.limit
        return {"limit": limit, "spent": used, "remaining": max(0, limit - used)}

    def _over(self, set_aside: int = 0) -> int:
        """By how many tokens the budget is used up, with what is set aside; below 0 for room."""
        used = tokens(self._spent()) + set_aside
        return used + (self._budget.headroom or 0) - self._budget.limit

    def _refuse(self) -> None:
        if self._spent().blind_calls:
            text = "a call before did not say what it used, and the budget is a hard one."
            raise LoopError("BUDGET", text, phase="engine")
        if self._over() >= 0:
            used = tokens(self._spent())
            text = f"{used} of {self._budget.limit} tokens are used."
            raise LoopError("BUDGET", text, phase="engine")

    def _warn(self) -> None:
        if self._over() >= 0:
            used = tokens(self._spent())
            logger.warning("over budget used=%s limit=%s", used, self._budget.limit)


def tokens(spent: Spent) -> int:
    """Input and output tokens of every call that said them, failed ones included (R266)."""
    return spent.input_tokens + spent.output_tokens
