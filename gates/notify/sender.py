"""The threads that send, apart from those that work: a slow receiver keeps no run waiting.

`up` and each Celery worker have one of these. A message or a commit only wakes it; what is due
stands in the table, and the sweep wakes it too.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final

from django.conf import settings

from runs import dispatch
from runs.steady import let_go

logger = logging.getLogger(__name__)

THREADS: Final = 4
IDLE_SECONDS: Final = 5.0
# Commits that follow each other closely are looked at together.
PAUSE_SECONDS: Final = 0.05
STOP_SECONDS: Final = 15.0
SWEEP_SECONDS: Final = 5.0
_KNOWN_SECONDS: Final = 5.0


class Sender:
    """Looks for what is due and sends it, each channel on a thread of its own."""

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="notify")
        self._knock = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._loop = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        self._loop.start()

    def knock(self) -> None:
        """Look now."""
        self._knock.set()

    def stop(self) -> None:
        """Begin nothing new, and let what is being sent come to its end."""
        self._stop.set()
        self._knock.set()
        if self._loop.ident is not None:
            self._loop.join(STOP_SECONDS)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        wait = 0.0
        while not self._stop.is_set():
            self._knock.wait(wait)
            self._knock.clear()
            try:
                wait = self._look()
            except Exception:
                logger.exception("the notifier could not look for messages")
                wait = IDLE_SECONDS
            finally:
                let_go()
            self._stop.wait(PAUSE_SECONDS)

    def _look(self) -> float:
        """Hand out what is due; returns how long there is nothing more to do."""
        from gates.notify.deliver import due_channels, seconds_until_due
        from gates.notify.spread import BATCH, spread

        more = spread() >= BATCH
        for channel in due_channels():
            with self._lock:
                if self._stop.is_set() or channel in self._busy:
                    continue
                self._busy.add(channel)
            self._pool.submit(self._deliver, channel)
        if more:
            return 0.0
        with self._lock:
            busy = list(self._busy)
        # What is due on a busy channel is found when that is done: it knocks.
        return seconds_until_due(IDLE_SECONDS, busy)

    def _deliver(self, channel: int) -> None:
        from gates.notify.deliver import deliver

        try:
            deliver(channel)
        except Exception:
            logger.exception("the channel could not be served channel=%s", channel)
            self._stop.wait(IDLE_SECONDS)
        finally:
            let_go()
            with self._lock:
                self._busy.discard(channel)
            self._knock.set()


_mine: Sender | None = None
_starting = threading.Lock()


def begin() -> Sender:
    """The sender of this process, started on first use."""
    global _mine  # noqa: PLW0603  one for each process
    with _starting:
        if _mine is None:
            _mine = Sender()
            _mine.start()
        return _mine


def end() -> None:
    """Stop the sender of this process, if it has one."""
    global _mine
    with _starting:
        ending, _mine = _mine, None
    if ending is not None:
        ending.stop()


def wake() -> None:
    """Something may be due: tell whoever sends. A lost word costs seconds, the sweep looks too."""
    if _mine is not None:
        _mine.knock()
    elif settings.CELERY_BROKER_URL and _anybody(int(time.monotonic() / _KNOWN_SECONDS)):
        _send_word()


def sweep() -> int:
    """See that what is due is sent: by the process's sender, by a worker, or else here and now."""
    from gates.models import Notice
    from gates.notify.deliver import deliver, due_channels
    from gates.notify.spread import spread

    if _mine is not None:
        _mine.knock()
        return 0
    if settings.CELERY_BROKER_URL:
        if Notice.objects.exists() or due_channels():
            _send_word()
        return 0
    spread()
    # The process has nothing else that sends; its sweep is not to be kept for long either.
    until, handled = time.monotonic() + SWEEP_SECONDS, 0
    for channel in due_channels():
        left = until - time.monotonic()
        handled += deliver(channel, seconds=left) if left > 0 else 0
    return handled


def _send_word() -> None:
    from gates.tasks import notify

    dispatch.tell(notify)


@lru_cache(maxsize=1)
def _anybody(_: int) -> bool:
    """Whether anybody is told anything here; known for some seconds."""
    from gates.models import Channel

    return Channel.objects.filter(removed_at=None).exists()
