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

    def need(self, at_most: int | None) -> int:
        """What is set aside for a call: all there is when nobody can tell what it uses."""
        known = at_most if self.headroom is None else self.headroom
        return self.limit if known is None else known

    def over(self, spent: Spent, set_aside: int = 0) -> int:
        """By how many tokens it is used up, with what is set aside; below 0 for room."""
        return tokens(spent) + set_aside + (self.headroom or 0) - self.limit

    def has_room(self, spent: Spent, set_aside: int) -> bool:
        """Whether a call may begin beside those that tokens are set aside for."""
        return not set_aside or self.over(spent, set_aside) < 0

    def check(self, spent: Spent) -> None:
        """Raise LoopError BUDGET when nothing is left for a call (runs.md R266, R267)."""
        if spent.blind_calls:
            text = "a call before did not say what it used, and the budget is a hard one."
            raise LoopError("BUDGET", text, phase="engine")
        if self.over(spent) >= 0:
            text = f"{tokens(spent)} of {self.limit} tokens are used."
            raise LoopError("BUDGET", text, phase="engine")

    def warn(self, spent: Spent) -> None:
        """Say that a soft budget is used up, if it is."""
        if self.over(spent) >= 0:
            logger.warning("over budget used=%s limit=%s", tokens(spent), self.limit)


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
            self._budget.warn(self._spent())
            yield
            return
        need = self._budget.need(at_most)
        with self._room:
            self._room.wait_for(lambda: self._budget.has_room(self._spent(), self._set_aside))
            self._budget.check(self._spent())
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


def tokens(spent: Spent) -> int:
    """Input and output tokens of every call that said them, failed ones included (R266)."""
    return spent.input_tokens + spent.output_tokens
