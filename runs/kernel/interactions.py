"""Rich interactions: a question with an application's own form of answer (gates.md section 12).

An answer is `{"feedback": any JSON, "prompt": text, "decision"?: "approved"|"changes-requested"}`;
whatever else it holds is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.answers import check_schema
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.events import EventKind, Path
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.kernel.graph import LeafShape
from runs.kernel.jsonable import JSONValue, JsonValueError, digest_hex, frozen_object
from runs.kernel.outcomes import Finding, Outcome, revision_request
from runs.kernel.redact import redact

APPROVED: Final = "approved"
CHANGES_REQUESTED: Final = "changes-requested"
DECISIONS: Final = (APPROVED, CHANGES_REQUESTED)
# What a question is for, in its routing: an answer wanted as it is, or a decision about work.
PURPOSE: Final = "interaction"
REVIEW: Final = "human-review"
PURPOSES: Final = frozenset({PURPOSE, REVIEW})
NOT_BLANK: Final = r"\S"
_FIELDS: Final = {
    "id": "id",
    "response_schema": "response_schema",
    "responseSchema": "response_schema",
    "answer": "answer",
}

Answer = Callable[[CallbackRequest, Any], Any]


@dataclass(frozen=True)
class Interaction:
    """A binding: what the handler is called, the answer it gives, and the handler if there is one.

    `answer(request, signal)`, sync or async, returns the response, or None when the person
    cancelled. Without it whoever finds the question answers it.
    """

    id: str
    response_schema: Mapping[str, JSONValue]
    answer: Answer | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise DeclarationError("an interaction needs an id.")
        if self.answer is not None and not callable(self.answer):
            raise DeclarationError(
                f"the answer of interaction {self.id!r} is no function of request and signal."
            )
        try:
            schema = frozen_object("the response schema", self.response_schema)
            check_schema(schema)
        except (JsonValueError, ValueError, TypeError) as error:
            raise DeclarationError(f"interaction {self.id!r}: {error}") from error
        object.__setattr__(self, "response_schema", schema)

    @property
    def router(self) -> str:
        """Who claims a question for the handler (gates.md G131)."""
        return f"interaction:{self.id}"

    def to_json(self) -> dict[str, JSONValue]:
        """What the record knows of it: the identity of a step that asks this way."""
        return {"id": self.id, "responseSchema": self.response_schema}


def to_interaction(given: Any) -> Interaction:
    """The binding, from itself or from a mapping with its fields; raises DeclarationError."""
    if isinstance(given, Interaction):
        return given
    if not isinstance(given, Mapping):
        raise DeclarationError("an interaction has an id, a response_schema and maybe an answer.")
    if unknown := sorted(map(str, set(given) - set(_FIELDS))):
        raise DeclarationError(f"an interaction has no field {', '.join(unknown)}.")
    fields = {_FIELDS[key]: value for key, value in given.items()}
    if missing := sorted({"id", "response_schema"} - set(fields)):
        raise DeclarationError(f"an interaction is missing its {' and '.join(missing)}.")
    return Interaction(**fields)


def wrapped_schema(application: Mapping[str, Any], *, review: bool) -> dict[str, JSONValue]:
    """The schema of the question: the application's, and what every response has (G130).

    Raises DeclarationError when the application leaves no room for that.
    """
    properties = application.get("properties")
    required = application.get("required")
    declared = dict(properties) if isinstance(properties, Mapping) else {}
    needed = list(required) if isinstance(required, list | tuple) else []
    own: dict[str, Any] = {
        "feedback": declared.get("feedback", {}),
        "prompt": {"type": "string"} if review else {"type": "string", "pattern": NOT_BLANK},
    }
    if review:
        own["decision"] = {"type": "string", "enum": list(DECISIONS)}
    if application.get("additionalProperties") is False and (left := set(own) - set(declared)):
        raise DeclarationError(
            f"the response schema takes no {', '.join(sorted(left))}: declare it, or allow "
            "additional properties."
        )
    schema: dict[str, Any] = {
        **application,
        "type": "object",
        "properties": {**declared, **own},
        "required": [*needed, *(name for name in own if name not in needed)],
        "allOf": [application],
    }
    if review:
        schema["anyOf"] = [
            {"properties": {"decision": {"type": "string", "enum": [APPROVED]}}},
            {
                "properties": {
                    "decision": {"type": "string", "enum": [CHANGES_REQUESTED]},
                    "prompt": {"type": "string", "pattern": NOT_BLANK},
                }
            },
        ]
    return schema


def gate_id(binding_id: str, path: Path) -> str:
    """The gate of a binding at a place of a run: the same in every checkout (G129, design D10)."""
    return f"{binding_id}:{digest_hex({'path': list(path)})}"


def requester(path: Path, identity: str, iteration: int) -> dict[str, JSONValue]:
    """Who asks, as a question's input names it (G135)."""
    return {"path": list(path), "identity": identity, "iteration": iteration}


def identity_of(name: str, question: str, interaction: Interaction) -> str:
    """The digest of a declared question: another declaration is another question."""
    return digest_hex({"name": name, "question": question, "interaction": interaction.to_json()})


def interaction_request(
    interaction: Interaction,
    *,
    path: Path,
    question: str,
    input: Any,
    review: bool = False,
    presentation: Mapping[str, Any] | None = None,
) -> CallbackRequest:
    """The question as it is put. Raises JsonValueError for an input that is no JSON."""
    return create_callback_gate(
        gate_id=gate_id(interaction.id, path),
        gate_version=1,
        decision_text=question,
        response_schema=wrapped_schema(interaction.response_schema, review=review),
        input=input,
        presentation=presentation,
    )


def response_fault(response: object) -> str | None:
    """What keeps a value from being a response, whatever the application's schema says (G128)."""
    if not isinstance(response, Mapping):
        return "the response is no JSON object."
    if "feedback" not in response:
        return "feedback is missing."
    decision = response.get("decision", CHANGES_REQUESTED)
    if decision not in DECISIONS:
        return f"decision is none of {', '.join(DECISIONS)}."
    prompt = response.get("prompt")
    if not isinstance(prompt, str):
        return "prompt is no text."
    if decision != APPROVED and not prompt.strip():
        return "prompt is blank, and only an approval needs no words."
    return None


def checked_response(value: object) -> Mapping[str, JSONValue]:
    """The response, copied; raises LoopError VALIDATION for what is none (G128)."""
    try:
        response = frozen_object("the response", value)
    except (JsonValueError, TypeError, ValueError) as error:
        raise LoopError("VALIDATION", str(error), phase="body") from error
    if fault := response_fault(response):
        raise LoopError("VALIDATION", fault, phase="body")
    return response


def answer_in(history: Iterable[Mapping[str, Any]]) -> Mapping[str, JSONValue] | None:
    """The response that the events of one question hold; None while there is none."""
    given = None
    for event in history:
        if event["kind"] == EventKind.SUBMITTED:
            given = event["response"]
    return given


def outcome_of_review(response: Mapping[str, Any], *, target: str | None = None) -> Outcome:
    """Only an explicit approval passes; anything else is work for another round (G136-G138)."""
    prompt = redact(str(response.get("prompt") or ""))
    if response.get("decision") == APPROVED:
        words = prompt if prompt.strip() else None
        return Outcome(status="pass", summary=words, data=response)
    return revision_request(
        target=target,
        reason=prompt,
        findings=[Finding(evidence=prompt)],
        data=response,
    )


def outcome_of_answer(response: Mapping[str, Any]) -> Outcome:
    """An answer that was only asked for: its words, and all of it as data (G143)."""
    return Outcome(status="pass", summary=redact(str(response["prompt"])), data=response)


def feedback_of(review: Outcome | None) -> Mapping[str, JSONValue] | None:
    """The whole response behind a review, for a writer that consumes feedback (G141).

    None for a review that was no person's, such as a command's or a panel's.
    """
    data = None if review is None else review.data
    return data if isinstance(data, Mapping) and response_fault(data) is None else None


def routers_of(leaf: LeafShape) -> frozenset[str]:
    """Who a step claims its own questions as, when code of its author answers them."""
    bound = leaf.extra.get("interaction")
    own = {f"interaction:{bound['id']}"} if isinstance(bound, Mapping) else set()
    return frozenset({f"{leaf.label}:answer", *own})
