"""Words for the kinds that the service adds to the seeds' own: questions, files, the run itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runs.kernel.numbers import count_of, number_of
from runs.report import action_words, engine_words
from runs.report.phrases import NOTE, START, WAITS, WRONG, Told, after, plain
from runs.report.text import Wire, facts, joined, many, text

ASKS: Final = "?"


def _asked(event: Wire) -> Told:
    request = facts(event.get("request"))
    return ASKS, after("question", request.get("decisionText"))


def _answered(event: Wire) -> Told:
    response = facts(event.get("response"))
    given = response.get("approved")
    verdict = ("approved" if given else "not approved") if isinstance(given, bool) else ""
    note = joined(verdict, text(response.get("note")), by=", ")
    return NOTE, joined(f"answered by {_router(event)}", note, by=": ")


def _router(event: Wire) -> str:
    return text(event.get("routerId")) or text(event.get("actor")) or "somebody"


def _by(words: str, mark: str = NOTE) -> Callable[[Wire], Told]:
    return lambda event: (mark, after(f"{words} {_router(event)}", event.get("reason")))


def _superseded(event: Wire) -> Told:
    """A question that was withdrawn or expired stands in its own place: nothing replaced it."""
    newer = event.get("supersededBy")
    if newer == event.get("requestId"):
        return NOTE, "question closed"
    return NOTE, after("question replaced by", newer)


def _loop_wait(event: Wire) -> Told:
    seconds = (number_of(event.get("waitMs")) or 0) / 1000
    return WAITS, f"loop wait {seconds:g}s"


def _file(event: Wire) -> Told:
    size = many(count_of(event.get("byteLength")), "byte")
    return NOTE, joined(joined("file", text(event.get("name"))), size, by=", ")


TOLD: Final[Mapping[str, Callable[[Wire], Told]]] = {
    **action_words.TOLD,
    **engine_words.TOLD,
    "run:cancel-requested": plain("cancel asked"),
    "run:held": plain("run held", WAITS),
    "run:resumed": plain("run resumed", START),
    "run:swept": plain("run looked at anew"),
    "loop:progress": plain("work looked at"),
    "loop:wait": _loop_wait,
    "loop:complete": plain("loop closed"),
    "step:ready": plain("step ready"),
    "step:lost": plain("step lost, its worker stopped before the result arrived", WRONG),
    "step:refused": plain("late result refused", WRONG),
    "artifact:stored": _file,
    "callback-requested": _asked,
    "callback-claimed": _by("claimed by"),
    "callback-released": _by("released by"),
    "callback-submitted": _answered,
    "callback-rejected": _by("answer refused to", WRONG),
    "callback-superseded": _superseded,
    "callback-withdrawn": plain("question withdrawn"),
    "callback-reminded": plain("reminder of the question"),
    "callback-overdue": plain("question not answered in time, it stays open", WRONG),
    "callback-escalated": plain("question not answered in time, others are asked", WRONG),
    "callback-expired": plain("question expired, nobody answered", WRONG),
    "callback-refused": _by("kept from answering:", WRONG),
    "callback-force-released": _by("claim taken away by"),
    "callback-responded": _by("one of several answers, by"),
    "callback-deputized": _by("in the place of somebody who is away answers"),
    "callback-assigned": _by("question assigned by"),
    "callback-delegated": _by("question handed on by"),
    "callback-overridden": _by("glass broken by", WRONG),
}
