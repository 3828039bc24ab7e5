"""Reviews by people, and other answers with an application's own form (gates.md section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils import timezone

from gates import access
from gates.evidence.masking import shown_to
from gates.models import Request, Response
from gates.principals import Principal
from gates.reviews.diffs import diff_in, said_in
from runs.inputs.validation import Fault
from runs.kernel import interactions
from runs.kernel.annotations import (
    MAX_ANNOTATIONS,
    NAME,
    disagreement,
    placed,
    takes_annotations,
)
from runs.kernel.clocks import iso
from runs.kernel.diffs import HINT
from runs.kernel.interactions import APPROVED, CHANGES_REQUESTED
from runs.kernel.jsonable import JSONValue
from runs.kernel.moments import milliseconds
from runs.plaintext import visible

PROMPT: Final = "prompt"
DECISION: Final = "decision"
FEEDBACK: Final = "feedback"


def is_review(schema: Any) -> bool:
    """Whether an answer of this schema is a person's decision about work."""
    properties, required = parts_of(schema)
    decision = properties.get(DECISION)
    allowed = decision.get("enum") if isinstance(decision, Mapping) else None
    return {FEEDBACK, PROMPT, DECISION} <= required and set(_texts(allowed)) == set(
        interactions.DECISIONS
    )


def is_rich(schema: Any) -> bool:
    """Whether an answer of this schema is a response with feedback and words."""
    properties, required = parts_of(schema)
    prompt = properties.get(PROMPT)
    is_text = isinstance(prompt, Mapping) and prompt.get("type") == "string"
    return is_text and {FEEDBACK, PROMPT} <= required


def parts_of(schema: Any) -> tuple[Mapping[str, Any], set[str]]:
    """The declared properties of a schema and the names it requires."""
    schema = schema if isinstance(schema, Mapping) else {}
    properties = schema.get("properties")
    return (
        properties if isinstance(properties, Mapping) else {},
        set(_texts(schema.get("required"))),
    )


def _texts(value: Any) -> list[str]:
    return [
        one for one in (value if isinstance(value, list | tuple) else ()) if isinstance(one, str)
    ]


def verdict_of(response: Any) -> str:
    """`yes` or `no` for the answer of a review, nothing for any other."""
    if not isinstance(response, Mapping) or FEEDBACK not in response:
        return ""
    return {APPROVED: "yes", CHANGES_REQUESTED: "no"}.get(str(response.get(DECISION)), "")


def words_of(response: Any) -> str:
    """What was written in the answer of a rich question."""
    words = response.get(PROMPT) if isinstance(response, Mapping) else None
    return words if isinstance(words, str) and FEEDBACK in response else ""


def subject_of(about: Any, row: Request) -> Any:
    """What a question is about: of a rich one its material, without the change that it shows."""
    asked = about if isinstance(about, Mapping) and is_rich(row.response_schema) else {}
    is_asked = {"requester", "material"} <= set(asked)
    material = asked["material"] if is_asked else about
    pointer = row.presentation.get(HINT) if isinstance(row.presentation, Mapping) else None
    if isinstance(pointer, str):
        inner = pointer.removeprefix("/material") if is_asked else pointer
        if inner == "":
            material = None
        elif isinstance(material, Mapping):
            name = inner.removeprefix("/").replace("~1", "/").replace("~0", "~")
            material = {key: value for key, value in material.items() if key != name} or None
    more = _of_a_model(asked) if is_asked else {}
    if not more:
        return material
    return {**(material if isinstance(material, Mapping) else {"about": material}), **more}


def _of_a_model(asked: Mapping[str, Any]) -> dict[str, Any]:
    """That a model asks, and what it was told before (gates.md G148)."""
    requester, before = asked["requester"], asked.get("previousFeedback")
    found: dict[str, Any] = {}
    if isinstance(requester, Mapping) and requester.get("engine"):
        named = (requester.get("engine"), requester.get("model"))
        found["written by the model"] = " ".join(str(one) for one in named if one)
    if isinstance(before, list | tuple) and before:
        found["answered before"] = [words_of(one) for one in before]
    return found


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an earlier round was sent back with: a comment on a line, or words about the whole."""

    place: str
    body: str
    author: str


def wanted_before(who: Principal, row: Request) -> list[Wanted]:
    """What the same question's last round was refused with; nothing in a first round."""
    if not is_review(row.response_schema):
        return []
    same = Request.objects.filter(run=row.run_id, gate_id=row.gate_id, asked_seq__lt=row.asked_seq)
    earlier = same.order_by("-asked_seq").first()
    if earlier is None or not access.may_see(who, earlier):
        return []
    answer = Response.objects.filter(request=earlier).order_by("seq").first()
    if answer is None or verdict_of(answer.response) != "no":
        return []
    found = [
        Wanted(place=visible(f"{path}:{place[1]}"), body=one.body, author=one.author)
        for path, places in said_in(answer.response).items()
        for place, listed in places.items()
        for one in listed
    ]
    words = visible(words_of(answer.response))
    return found or [Wanted(place="", body=words, author="")]


def in_short(row: Request, shown: Any) -> Any:
    """The input without the change in it, for a page that shows the change by itself."""
    pointer = row.presentation.get(HINT) if isinstance(row.presentation, Mapping) else None
    names = pointer.split("/")[1:] if isinstance(pointer, str) else []
    return _replaced(shown, [name.replace("~1", "/").replace("~0", "~") for name in names])


def _replaced(value: Any, names: list[str]) -> Any:
    if not names:
        return "(the proposed change, which the page shows by itself)"
    if not isinstance(value, Mapping) or names[0] not in value:
        return value
    return {**value, names[0]: _replaced(value[names[0]], names[1:])}


def is_apart(row: Request, path: str) -> bool:
    """Whether this part of the input is shown in its own place, or names only who asks."""
    pointer = row.presentation.get(HINT) if isinstance(row.presentation, Mapping) else None
    at_change = isinstance(pointer, str) and (path == pointer or path.startswith(f"{pointer}/"))
    return at_change or (is_rich(row.response_schema) and path.startswith("/requester"))


# --- what is recorded -----------------------------------------------------------------------------


def prepared(row: Request, value: JSONValue, who: Principal) -> tuple[JSONValue, list[Fault]]:
    """A response as it is kept, and what speaks against it (gates.md G195-G197).

    Annotations stay where they are on a line of the change, and by whoever sends them, at the
    time they are sent: what a body says about its author counts for nothing.
    """
    if not takes_annotations(row.response_schema) or not isinstance(value, Mapping):
        return value, []
    feedback = value.get(FEEDBACK)
    diff = diff_in(row, shown_to(who, row).input)
    if diff is None or not isinstance(feedback, Mapping):
        return value, []
    given = feedback.get(NAME, [])
    if not isinstance(given, list | tuple):
        return value, []
    kept = placed(given[: MAX_ANNOTATIONS + 1], diff, author=_author(who), at=_now())
    fault = None
    if is_review(row.response_schema) or len(kept) > MAX_ANNOTATIONS:
        fault = disagreement(value.get(DECISION), len(kept), can_comment=diff.takes_comments)
    if fault is not None:
        return value, [(DECISION, fault)]
    return {**value, FEEDBACK: {**feedback, NAME: kept}}, []


def undated(response: Any) -> Any:
    """The response without the times of its annotations: sent twice, it is the same answer."""
    feedback = response.get(FEEDBACK) if isinstance(response, Mapping) else None
    listed = feedback.get(NAME) if isinstance(feedback, Mapping) else None
    if not isinstance(feedback, Mapping) or not isinstance(listed, list | tuple):
        return response
    bare = [
        {key: part for key, part in one.items() if key != "createdAt"}
        if isinstance(one, Mapping)
        else one
        for one in listed
    ]
    return {**response, FEEDBACK: {**feedback, NAME: bare}}


def _author(who: Principal) -> dict[str, JSONValue]:
    if who.key_name:
        return {"kind": "key", "id": who.key_name}
    return {"kind": "human", "id": who.user.username if who.user is not None else who.actor}


def _now() -> str:
    return iso(milliseconds(timezone.now()))
