"""Questions a step asks a person: typed parts, the schema of their answers, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

from runs.kernel.callbacks import CallbackState
from runs.kernel.clocks import ANSWER
from runs.kernel.events import Path, joined
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.kernel.jsonable import JSONValue, canonical_json
from runs.kernel.patterns import compile_pattern

PURPOSE: Final = "question"
MAX_PER_STEP: Final = 20
MAX_PER_RUN: Final = 100
MAX_PROMPT: Final = 500
MAX_OPTIONS: Final = 100
MAX_ANSWER: Final = 10_000
# A host reads a schema of at most 256 KiB; a form that is longer could never be answered.
MAX_FORM: Final = 200_000
_PREFIX: Final = "questions"
_NOT_BLANK: Final = r"\S"
_KEYS: Final = {
    "prompt": "prompt",
    "key": "key",
    "options": "options",
    "multiple": "multiple",
    "allow_other": "allow_other",
    "allowOther": "allow_other",
    "required": "required",
}
Answer = str | list[str] | None


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a form (interactions.md I22, I23).

    Without `options` the answer is free text; with them one of them, or several with `multiple`.
    `allow_other` lets a person write something else beside the options. `key` names the answer.
    """

    prompt: str
    _: KW_ONLY
    key: str = ""
    options: Sequence[Any] = ()
    multiple: bool = False
    allow_other: bool = False
    required: bool = True

    def to_wire(self) -> dict[str, JSONValue]:
        """The typed part, as it is stored and sent; nothing is left out (I23)."""
        return {
            "key": self.key,
            "prompt": self.prompt,
            "options": list(self.options),
            "multiple": self.multiple,
            "allowOther": self.allow_other,
            "required": self.required,
        }

    def schema(self, title: str) -> dict[str, JSONValue]:
        """What an answer to this question has to be, as JSON Schema."""
        if not self.multiple:
            return {"type": "string", "title": title, **self._value(blank=not self.required)}
        return {
            "type": "array",
            "title": title,
            "items": {"type": "string", **self._value(blank=False)},
            "uniqueItems": True,
            **({"minItems": 1} if self.required else {}),
        }

    def _value(self, *, blank: bool) -> dict[str, JSONValue]:
        """One value: an option, an option or another text, or any text."""
        options: list[JSONValue] = list(self.options)
        if options and not self.allow_other:
            return {"enum": options}
        text: dict[str, JSONValue] = {"maxLength": MAX_ANSWER}
        if not blank or options:
            text["pattern"] = _NOT_BLANK
        if options:
            text["anyOf"] = [{"enum": options}, {"type": "string"}]
        return text

    def fault(self, given: Any) -> str:
        """What is wrong with an answer, in words; nothing when it fits (I26)."""
        if not self.multiple:
            return self._fault_of(given, blank=not self.required and not self.options)
        if not isinstance(given, list | tuple):
            return "This has to be a list."
        if self.required and not given:
            return "This is required."
        faults = (self._fault_of(one, blank=False) for one in given)
        twice = "Nothing may be listed twice." if len(set(map(str, given))) < len(given) else ""
        return next((words for words in faults if words), twice)

    def _fault_of(self, given: Any, *, blank: bool) -> str:
        if not isinstance(given, str):
            return "This has to be text."
        if given in self.options:
            return ""
        if self.options and not self.allow_other:
            return "This is not one of the choices."
        if len(given) > MAX_ANSWER:
            return f"This can have at most {MAX_ANSWER} characters."
        return "" if blank or _has_text(given) else "This is required."


def read_questions(given: Iterable[Any]) -> list[Question | None]:
    """The questions cleaned up, each with a key of its own; None for a blank one (I24).

    Raises ValueError or TypeError naming the question that cannot be asked.
    """
    read = [_read(number, one) for number, one in enumerate(_listed(given), start=1)]
    usable = [question for question in read if question is not None]
    if not usable:
        raise ValueError("there is no question in it.")
    keys = [question.key for question in usable]
    taken = set(keys)
    kept: list[Question | None] = []
    for number, question in enumerate(read, start=1):
        if question is None or (question.key and question.key not in _named(kept)):
            kept.append(question)
            continue
        key = "answer" if len(usable) == 1 else f"answer{number}"
        while key in taken:
            key += "_"
        taken.add(key)
        kept.append(replace(question, key=key))
    return kept


def _named(kept: list[Question | None]) -> set[str]:
    return {question.key for question in kept if question is not None}


def _listed(given: Iterable[Any]) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise TypeError("the questions are no list.")
    return list(given)


def _read(number: int, given: Any) -> Question | None:
    if isinstance(given, str):
        given = Question(given)
    if isinstance(given, Mapping):
        odd = [key for key in given if key not in _KEYS]
        if odd or "prompt" not in given:
            what = f"{odd[0]!r} is no part of it" if odd else "it has no prompt"
            raise ValueError(f"question {number} cannot be asked: {what}.")
        given = Question(**{_KEYS[key]: value for key, value in given.items()})
    if not isinstance(given, Question):
        raise TypeError(f"question {number} is no question but {type(given).__name__}.")
    fault = _part_fault(given)
    if fault:
        raise ValueError(f"question {number} cannot be asked: {fault}.")
    prompt = given.prompt.strip()[:MAX_PROMPT].rstrip()
    options = _options(given.options)
    if given.multiple and not options:
        raise ValueError(f"question {number} cannot be asked: multiple needs options.")
    if not prompt:
        return None
    other = given.allow_other or not options
    return replace(given, prompt=prompt, options=options, allow_other=other)


def _part_fault(given: Question) -> str:
    if not isinstance(given.prompt, str) or not isinstance(given.key, str):
        return "its prompt and its key are texts"
    flags = (given.multiple, given.allow_other, given.required)
    if not all(isinstance(flag, bool) for flag in flags):
        return "multiple, allow_other and required are true or false"
    if isinstance(given.options, str) or not isinstance(given.options, Sequence):
        return "its options are no list"
    if not all(isinstance(option, str | bool | int | float) for option in given.options):
        return "its options are texts or numbers"
    if len(given.options) > MAX_OPTIONS:
        return f"it has more than {MAX_OPTIONS} options"
    return ""


def _options(given: Sequence[Any]) -> tuple[str, ...]:
    """Options as texts, each once, without blank ones."""
    texts = (one if isinstance(one, str) else canonical_json(one) for one in given)
    trimmed = (text.strip()[:MAX_PROMPT].rstrip() for text in texts)
    return tuple(dict.fromkeys(text for text in trimmed if text))


def question_request(
    path: Path,
    call: int,
    questions: Sequence[Question],
    *,
    title: str = "",
    about: Any = None,
) -> CallbackRequest:
    """The request of a step's `call`-th asking: the same questions make the same request.

    Raises ValueError when they are too long, or what they are about is no JSON.
    """
    alone = len(questions) == 1 and not title
    more = f" (and {len(questions) - 1} more)" if len(questions) > 1 else ""
    text = title or questions[0].prompt + more
    fields = {one.key: one.schema("Your answer" if alone else one.prompt) for one in questions}
    if len(canonical_json(fields)) > MAX_FORM:
        raise ValueError(f"its questions and options take more than {MAX_FORM} characters.")
    subject: dict[str, Any] = {"questions": [one.to_wire() for one in questions]}
    if about is not None:
        subject["about"] = about
    place = _PREFIX if call == 1 else f"{_PREFIX}.{call}"
    return create_callback_gate(
        gate_id=f"{place}:{joined(path)}",
        gate_version=1,
        decision_text=text,
        response_schema={
            "type": "object",
            "properties": fields,
            "required": [one.key for one in questions if one.required],
            "additionalProperties": False,
        },
        input=subject,
    )


def answer_faults(
    questions: Sequence[Question], response: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """What is wrong with a response, as (key, words); empty when it answers all (I26)."""
    by_key = {question.key: question for question in questions}
    unknown = [(key, "The question does not ask for this.") for key in response.keys() - by_key]
    missing = [
        (key, "This is required.")
        for key, question in by_key.items()
        if question.required and key not in response
    ]
    given = [(key, one.fault(response[key])) for key, one in by_key.items() if key in response]
    return [*unknown, *missing, *((key, words) for key, words in given if words)]


def answers_of(questions: Sequence[Question | None], response: Mapping[str, Any]) -> list[Answer]:
    """The answers in the order of the questions; None, or an empty list, for one left out."""
    return [None if one is None else _answer(one, response.get(one.key)) for one in questions]


def _answer(question: Question, given: Any) -> Answer:
    if question.multiple:
        return [str(one) for one in given or ()]
    return given if isinstance(given, str) and _has_text(given) else None


def _has_text(given: str) -> bool:
    """As the schema's own pattern sees it, so that what it takes is never refused later."""
    return compile_pattern(_NOT_BLANK).search(given)


def default_answers(expired: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """What counts for the questions nobody answered in time, by request id, where a step said so.

    Nobody gave these answers, so they stand in no response (interactions.md I48).
    """
    return {
        request_id: over["answer"]
        for request_id, over in expired.items()
        if over.get("onExpiry") == ANSWER and "answer" in over
    }


def asked_count(request: CallbackRequest) -> int:
    """How many questions a request puts; 0 for a request of another kind."""
    place, colon, _ = request.gate_id.partition(":")
    if not colon or place.partition(".")[0] != _PREFIX or not isinstance(request.input, Mapping):
        return 0
    listed = request.input.get("questions")
    return len(listed) if isinstance(listed, list | tuple) else 0


def too_many(state: CallbackState, request: CallbackRequest) -> bool:
    """Whether the run would have put more questions than a run may (design D11)."""
    before = sum(
        asked_count(held.request)
        for request_id, held in state.requests.items()
        if request_id != request.request_id
    )
    return before + asked_count(request) > MAX_PER_RUN
