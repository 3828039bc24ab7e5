"""Tells somebody else how a run in a script goes: one JSON message for each thing worth knowing.

It listens and never talks back: what cannot be delivered goes to the error hook, and the run
neither waits for a delivery nor fails with one (gates.md G199-G201).
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from runs.kernel.events import EventKind

logger = logging.getLogger(__name__)

Message = dict[str, Any]
Post = Callable[[Message], object]
SECONDS: Final = 10.0
_ENDS: Final = {"pass": ("finished", "passed")}


class Notifier:
    """Give it to a run as `on_event`. Messages go out in order, on a thread of their own."""

    def __init__(
        self, post: Post, on_error: Callable[[Exception, Message], object] | None = None
    ) -> None:
        self._post = post
        self._on_error = on_error
        self._waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._lock = threading.Condition()
        self._open = 0
        self._thread: threading.Thread | None = None
        self._story = _Story()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take an event of the run; what it amounts to is sent later."""
        for message in self._story.told(event):
            with self._lock:
                self._open += 1
                if self._thread is None:
                    self._thread = threading.Thread(target=self._send, name="notifier", daemon=True)
                    self._thread.start()
            self._waiting.put(message)

    def done(self, seconds: float | None = None) -> bool:
        """Wait until everything was sent or given up; False when that took too long."""
        until = None if seconds is None else time.monotonic() + seconds
        with self._lock:
            while self._open:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._lock.wait(left)
        return True

    def _send(self) -> None:
        while True:
            message = self._waiting.get()
            try:
                self._post(message)
            except Exception as error:  # noqa: BLE001  a delivery never harms the run
                self._complain(error, message)
            finally:
                with self._lock:
                    self._open -= 1
                    self._lock.notify_all()

    def _complain(self, error: Exception, message: Message) -> None:
        if self._on_error is None:
            logger.warning(
                "not delivered event=%s error=%s", message["event"], type(error).__name__
            )
            return
        try:
            self._on_error(error, message)
        except Exception:
            logger.exception("the error hook of a notifier raised event=%s", message["event"])


def notifier(
    to: str | Post, *, on_error: Callable[[Exception, Message], object] | None = None
) -> Notifier:
    """A listener for `run(job, on_event=...)` that posts `{event, ts, text, ...}` to an address.

    `event` is run-started, stage-finished, sent-back, paused, finished or failed; `ts` is in ms
    since the epoch. Where the run has a page of its own its address is `monitor`. `to` may be a
    function that is given each message; `on_error(error, message)` hears what went wrong. Call
    `done()` before the process ends.
    """
    return Notifier(_poster(to) if isinstance(to, str) else to, on_error)


def _poster(address: str) -> Post:
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError("A notifier posts to an address that begins with http:// or https://.")

    def post(message: Message) -> None:
        body = json.dumps(message, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(address, data=body, headers=headers, method="POST")  # noqa: S310  checked
        with urlopen(request, timeout=SECONDS):  # noqa: S310  checked above
            pass

    return post


class _Story:
    """What of a run's events is worth a message."""

    def __init__(self) -> None:
        self._root: list[str] | None = None
        self._monitor = ""
        self._asked: dict[str, tuple[list[str], str]] = {}

    def told(self, event: Mapping[str, Any]) -> Iterator[Message]:
        """The messages of one event, in order."""
        match event["kind"]:
            case EventKind.MONITOR:
                self._monitor = str(event["url"])
            case EventKind.RUN_START:
                # A run that is taken up again announces nothing of its own.
                if event.get("session") == 1:
                    yield self._message("run-started", event, "The run started")
            case EventKind.GRAPH_START:
                self._root = self._root or list(event["path"])
            case EventKind.REQUESTED:
                asked = event["request"]
                self._asked[asked["requestId"]] = (list(event["path"]), asked["decisionText"])
            case EventKind.SUBMITTED | EventKind.SUPERSEDED:
                self._asked.pop(event["requestId"], None)
            case EventKind.SEND_BACK if event["accepted"]:
                text = f"{event['from']} sent the work back to {event['to']}: {event['reason']}"
                yield self._message("sent-back", event, text, to=event["to"])
            case EventKind.NODE:
                yield from self._stage(event)
            case EventKind.RUN_END:
                yield from self._end(event)

    def _stage(self, event: Mapping[str, Any]) -> Iterator[Message]:
        if event["phase"] != "done" or list(event["path"]) != self._root:
            return
        name, outcome = event["node"], event["outcome"]
        if outcome["status"] == "paused":
            yield from self._paused(event, [*event["path"], name], outcome, stage=name)
            return
        text = f"{name}: {outcome['status']}, {outcome.get('summary', '')}".rstrip(", ")
        facts = {"stage": name, "status": outcome["status"]}
        yield self._message("stage-finished", event, text, **facts)

    def _paused(
        self, event: Mapping[str, Any], path: list[str], outcome: Mapping[str, Any], **facts: Any
    ) -> Iterator[Message]:
        """One message for each question that waits at the place."""
        here = [key for key, (at, _) in self._asked.items() if at[: len(path)] == path]
        for key in here:
            _, question = self._asked.pop(key)
            told = {**facts, "question": question, "requestId": key}
            yield self._message("paused", event, f"Waits for a person: {question}", **told)
        if not here and facts:
            yield self._message("paused", event, str(outcome.get("summary") or "paused"), **facts)

    def _end(self, event: Mapping[str, Any]) -> Iterator[Message]:
        outcome = event["outcome"]
        if outcome["status"] == "paused":
            # What no stage has told of yet: a run that is one step, or none at all.
            yield from self._paused(event, [], outcome)
            return
        kind, word = _ENDS.get(outcome["status"], ("failed", outcome["status"]))
        summary = outcome.get("summary", "")
        text = f"The run ended, {word}{f': {summary}' if summary else ''}"
        yield self._message(kind, event, text, status=outcome["status"])

    def _message(self, kind: str, event: Mapping[str, Any], text: str, **facts: Any) -> Message:
        page = {"monitor": self._monitor} if self._monitor else {}
        return {"event": kind, "ts": event["ts"], "text": text, **facts, **page}
