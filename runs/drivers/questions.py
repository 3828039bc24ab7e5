"""How a step asks a person and goes on: it runs again from its start, answers in hand."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from runs.kernel import questions as parts
from runs.kernel.errors import LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JsonValueError, frozen_object
from runs.kernel.questions import Answer, Question
from runs.shapes.deadlines import deadline_routing
from runs.shapes.job import Asking
from runs.shapes.routing import Answering, RoutingRefused, need_people, routing_of

if TYPE_CHECKING:
    from runs.drivers.context import Context


class AnswerAwaited(BaseException):
    """The step has asked and goes no further in this start; it is no error to catch."""


class Asked:
    """What one start of a step has asked so far. Its calls are told apart by their order."""

    def __init__(self) -> None:
        self.waiting: Asking | None = None
        self._thread: int | None = None
        self._calls = 0
        self._count = 0

    def begin(self) -> None:
        """A step's body begins on this thread: from here it may ask."""
        self._thread = threading.get_ident()

    def need_step_thread(self, what: str) -> None:
        """Raise VALIDATION anywhere but on the thread of a step's body."""
        if self._thread is None:
            raise _refused(f"only a step can {what}; a condition or a hook cannot.")
        if self._thread != threading.get_ident():
            # The order of calls is what finds their answers again.
            raise _refused(f"a step can {what} on its own thread only.")
        if self.waiting is not None:
            raise AnswerAwaited

    def next_call(self, count: int) -> int:
        """The number of the call that puts so many questions, from 1."""
        self.need_step_thread("ask questions")
        self._count += count
        if self._count > parts.MAX_PER_STEP:
            raise _refused(f"a step asks at most {parts.MAX_PER_STEP} questions.")
        self._calls += 1
        return self._calls


def ask(
    ctx: Context,
    given: Iterable[Question | Mapping[str, Any] | str],
    *,
    title: str,
    about: Any,
    per_attempt: bool,
    answering: Answering,
    time: Mapping[str, Any],
) -> list[Answer]:
    """The stored answers to these questions; without them the step ends here and waits."""
    asked = ctx.notes.questions
    if asked.waiting is not None:
        raise AnswerAwaited
    request, listed = _request(ctx, given, title, _about(ctx, about, per_attempt=per_attempt))
    response = _answer_to(ctx, request)
    if response is not None:
        _need_answer("the answer", listed, response)
        return parts.answers_of(listed, response)
    if time["default_answer"] is not None:
        _need_answer("default_answer", listed, time["default_answer"])
    timed = deadline_routing("ask_questions", request.response_schema, **time)
    asked.waiting = Asking(request=request, routing=_routing(request, answering, timed))
    raise AnswerAwaited


def _need_answer(what: str, listed: list[Question | None], response: Mapping[str, Any]) -> None:
    """Raise for a response that does not answer the questions, whoever let it through."""
    usable = [question for question in listed if question is not None]
    for key, words in parts.answer_faults(usable, response):
        raise _refused(f"{what} {key!r} cannot be used: {words}")


def _request(
    ctx: Context, given: Iterable[Any], title: str, about: Any
) -> tuple[CallbackRequest, list[Question | None]]:
    try:
        listed = parts.read_questions(given)
        usable = [question for question in listed if question is not None]
        call = ctx.notes.questions.next_call(len(usable))
        return parts.question_request(ctx.path, call, usable, title=title, about=about), listed
    except (ValueError, TypeError) as error:
        raise _refused(f"ask_questions: {error}") from error


def _about(ctx: Context, about: Any, *, per_attempt: bool) -> Any:
    """What is asked about; asked anew in every attempt and round, with their numbers (D7)."""
    if not per_attempt:
        return about
    about = about if isinstance(about, Mapping) else {} if about is None else {"subject": about}
    attempt = ctx.graph.attempt if ctx.graph is not None else 1
    rounds = {"round": list(ctx.rounds)} if ctx.rounds else {}
    return {**about, "attempt": attempt, **rounds}


def _routing(
    request: CallbackRequest, answering: Answering, timed: Mapping[str, Any]
) -> Mapping[str, Any]:
    try:
        given = {**routing_of(answering), **timed}
        need_people(given, "escalateTo")
        facts = {"purpose": parts.PURPOSE, "question": request.decision_text}
        return frozen_object("the routing", {**given, **facts})
    except (JsonValueError, RoutingRefused) as error:
        raise _refused(f"ask_questions: {error}") from error


def _answer_to(ctx: Context, request: CallbackRequest) -> Mapping[str, Any] | None:
    """The answer the history holds, or the one that counts for none; reading posts nothing."""
    for event in reversed(ctx.callbacks.history(request.request_id)):
        if event["kind"] == "callback-submitted":
            response: Mapping[str, Any] = event["response"]
            return response
    return ctx.default_answers.get(request.request_id)


def _refused(text: str) -> LoopError:
    return LoopError("VALIDATION", text, phase="body")
