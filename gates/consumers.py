"""The socket every page has: the count of what waits for this person, and what is new."""

from __future__ import annotations

from gates.inboxes import SIGNED_OUT, Inbox, inboxes
from runs.feeds.sockets import LiveSocket


class InboxConsumer(LiveSocket):
    """Rings lead to a reading of the inbox; the frame says what differs. It takes nothing."""

    _inbox: Inbox | None = None

    async def connect(self) -> None:
        if not self.scope["user"].is_authenticated:
            await self.close(code=SIGNED_OUT)
            return
        if await self.opened():
            self._inbox = inboxes.of(self.scope["user"].pk)
            self._inbox.join(self, self._since())

    async def disconnect(self, code: int) -> None:
        if self._inbox is not None:
            self._inbox.leave(self)
        await self.left()

    def _since(self) -> int:
        """When the page that listens was made; nothing where it does not say."""
        given = self.asked("since")
        return int(given) if given.isascii() and given.isdigit() and len(given) <= 10 else 0
