"""Shapes of the API about questions."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, StrictInt, StringConstraints

from gates.answers.answer_schemas import Override, ResponseShape
from runs.schemas import (
    EXAMPLE_RUN,
    EXAMPLE_TIME,
    NO_NUL,
    WHOLE,
    Body,
    EventShape,
    Json,
    Name,
    Paging,
    Reason,
    Shape,
    Text,
)

EXAMPLE_REQUEST: Final = "3f2b8c1a-6d5e-4f70-8a9b-0c1d2e3f4a5b"
EXAMPLE_DIGEST: Final = "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"
DEFINITION: Final[dict[str, Any]] = {
    "gateId": "release-approval",
    "gateVersion": 1,
    "decisionText": "Approve release abc123?",
    "responseSchema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
    "input": {"revision": "abc123"},
    "presentation": {},
}
OnExpiry = Literal["reject", "answer", "escalate", "stay-open"]
RequestStatus = Literal["pending", "claimed", "answered", "superseded", "expired", "cancelled"]
RequestKind = Literal["gate", "question", "approval"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Suffix = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
RouterId = Annotated[
    Suffix | None,
    Field(description="Tells the routers of one key apart: `a` makes it `key:NAME/a`."),
]
Token = Annotated[
    str | None, Field(max_length=200, description="What `claim` gave; only the claimer has it.")
]
EvenCancelled = Annotated[
    bool, Field(description="Answer a question whose run was cancelled. It starts nothing.")
]


def _example(**example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


class AskRequest(Body):
    """A gate definition, and whom it is for."""

    model_config = _example(
        **DEFINITION,
        stream="release-bot",
        audience={"groups": ["Release"]},
        dueAt="2026-01-01T12:00:00.000Z",
        priority=10,
    )

    gate_id: str = Field(min_length=1)
    gate_version: Annotated[StrictInt, Field(ge=1, le=2**53 - 1), WHOLE]
    decision_text: str = Field(min_length=1)
    response_schema: dict[str, Json]
    input: Json
    presentation: dict[str, Json] = Field(default_factory=dict)
    request_id: str | None = Field(
        default=None, description="When given, it must be what the definition makes."
    )
    digest: Digest | None = Field(
        default=None, description="When given, it must be what the definition makes."
    )
    stream: Name = Field(description="The stream of questions it belongs to.")
    audience: dict[str, Json] | None = Field(
        default=None,
        description="Lists of names under users, groups, permissions, keys or routers; everyone "
        "without it.",
    )
    router: str | None = Field(
        default=None,
        max_length=100,
        description="A service that an administrator has set up, and that the audience names: "
        "the question is posted to it.",
    )
    kind: Literal["gate", "question"] | None = None
    due_at: str | None = Field(default=None, description="When an answer is wanted.")
    due_in_seconds: float | None = Field(
        default=None, gt=0, description="The same, counted from when the question is posted."
    )
    expires_at: str | None = Field(default=None, description="When no answer counts any more.")
    expires_in_seconds: float | None = Field(
        default=None, gt=0, description="The same, counted from when the question is posted."
    )
    on_expiry: OnExpiry | None = Field(
        default=None, description="What follows when nobody answered in time; reject without it."
    )
    default_answer: dict[str, Json] | None = Field(
        default=None, description="What counts when nobody answered, with onExpiry answer."
    )
    escalate_to: dict[str, Json] | list[dict[str, Json]] | None = Field(
        default=None,
        description="The audience that is asked next, or several one after the other, with "
        "onExpiry escalate.",
    )
    escalate_seconds: float | list[float] | None = Field(
        default=None,
        description="How long it has, or each of them; as long as the first without it.",
    )
    due_in_business_hours: float | None = Field(
        default=None, description="Working hours of the first team that is asked."
    )
    expires_in_business_hours: float | None = Field(
        default=None, description="Working hours of the first team that is asked."
    )
    escalate_business_hours: float | list[float] | None = Field(
        default=None, description="The same as escalateSeconds in working hours."
    )
    calendar: dict[str, Json] | None = Field(
        default=None,
        description="Working time instead of the team's: zone, days from 1 for Monday, opens, "
        "closes, holidays.",
    )
    remind_before_seconds: list[float] | None = Field(
        default=None, max_length=10, description="When to remind, before it is due or expires."
    )
    priority: Annotated[StrictInt, Field(ge=-1000, le=1000), WHOLE] | None = None
    needed: Annotated[StrictInt, Field(ge=1, le=20), WHOLE] | None = Field(
        default=None, description="How many people have to answer; one without it."
    )
    one_per_team: bool | None = Field(
        default=None, description="Each of another group of the audience, nobody for two."
    )
    risk: Literal["low", "medium", "high"] | None = Field(
        default=None, description="With high, whoever asked may not answer, unless it is said."
    )
    exclude_requester: bool | None = Field(
        default=None, description="Whoever asked may not answer."
    )


class ClaimRequest(Body):
    """Who claims, when a key has several routers."""

    model_config = _example(routerId="a")

    router_id: RouterId = None
    even_cancelled: EvenCancelled = False


class ReleaseRequest(Body):
    """The claim to give back; the holder itself needs no token."""

    model_config = _example(claimToken="5d41402abc4b2a76b9719d911017c592")

    claim_token: Token = None
    router_id: RouterId = None


class SubmitRequest(Body):
    """The answer. Without a claim token, claim and answer are one act."""

    model_config = _example(
        claimToken="5d41402abc4b2a76b9719d911017c592",
        digest=EXAMPLE_DIGEST,
        response={"approved": True},
    )

    claim_token: Token = None
    digest: Digest = Field(description="The digest of the question that was read.")
    response: Json = Field(description="What the question's `responseSchema` asks for.")
    router_id: RouterId = None
    even_cancelled: EvenCancelled = False
    seen: bool = Field(
        default=False,
        description="The open findings of the work before it were read: no yes counts without.",
    )


class WithReason(Body):
    """A rescue stands in the record with its reason."""

    model_config = _example(reason="ben is on leave")

    reason: Reason


class Claimed(Shape):
    """The claim, and the token that proves it."""

    model_config = ConfigDict(
        title="Claimed",
        json_schema_extra={
            "examples": [
                {
                    "ok": True,
                    "claimToken": "5d41402abc4b2a76b9719d911017c592",
                    "routerId": "key:deploy-bot/a",
                }
            ]
        },
    )

    ok: Literal[True]
    claim_token: str
    router_id: str


class RequestShape(Shape):
    """One question."""

    model_config = ConfigDict(
        title="Request",
        json_schema_extra={
            "examples": [
                {
                    "id": EXAMPLE_REQUEST,
                    "requestId": f"release-approval#1#{EXAMPLE_DIGEST}",
                    **DEFINITION,
                    "masked": [],
                    "router": None,
                    "action": None,
                    "digest": EXAMPLE_DIGEST,
                    "kind": "gate",
                    "status": "pending",
                    "runId": EXAMPLE_RUN,
                    "stepPath": [],
                    "stream": "release-bot",
                    "audience": {"groups": ["Release"]},
                    "holder": None,
                    "claimedAt": None,
                    "priority": 10,
                    "dueAt": "2026-01-01T12:00:00.000Z",
                    "expiresAt": None,
                    "onExpiry": None,
                    "defaultAnswer": None,
                    "onAnswer": "resume",
                    "needed": 1,
                    "onePerTeam": False,
                    "excludeRequester": False,
                    "risk": None,
                    "responses": [],
                    "how": None,
                    "override": None,
                    "askedBy": "key:release-bot",
                    "supersededBy": None,
                    "closedReason": None,
                    "createdAt": EXAMPLE_TIME,
                    "answeredAt": None,
                    "answeredBy": None,
                    "url": f"https://obversa.example.com/gates/{EXAMPLE_REQUEST}/",
                }
            ]
        },
    )

    id: str
    request_id: str
    kind: RequestKind
    status: RequestStatus
    gate_id: str
    gate_version: int
    digest: str
    decision_text: str
    response_schema: dict[str, Json]
    input: Json
    action: dict[str, Json] | None = Field(
        description="For the yes to a call: its tool, risk, cost, and what each decision means."
    )
    masked: list[str] = Field(
        description="The places of the input that this caller may not read; "
        "the digest covers their true values."
    )
    presentation: dict[str, Json]
    run_id: str
    step_path: list[str]
    stream: str
    audience: dict[str, Json]
    holder: str | None
    claimed_at: str | None
    priority: int
    due_at: str | None
    expires_at: str | None
    on_expiry: OnExpiry | None
    default_answer: dict[str, Json] | None
    router: str | None = Field(description="The service that the question is sent to.")
    on_answer: Literal["resume", "hold"]
    needed: int = Field(description="How many distinct people have to answer.")
    one_per_team: bool
    exclude_requester: bool
    risk: Literal["low", "medium", "high"] | None
    responses: list[ResponseShape] = Field(description="One for each person, first given first.")
    how: Literal["answered", "timed_out", "overridden"] | None = Field(
        description="What gave the question its end, once it has one."
    )
    override: Override | None
    asked_by: str
    superseded_by: str | None
    closed_reason: str | None
    created_at: str
    answered_at: str | None
    answered_by: str | None
    url: str


class RequestPage(Shape):
    """Questions, the most urgent first."""

    items: list[RequestShape]
    next: str | None = Field(description="The cursor of the next page, null at the end.")


class History(Shape):
    """What happened to a question, in order."""

    items: list[EventShape]


class RequestFilter(Paging):
    """Which questions."""

    model_config = ConfigDict(populate_by_name=False)

    cursor: Annotated[str, StringConstraints(max_length=500)] = Field(
        default="", description="The `next` of the page before.", examples=[""]
    )
    status: RequestStatus | None = Field(
        default=None, description="Without it the open ones.", examples=["pending"]
    )
    kind: RequestKind | None = Field(default=None, description="Of one kind.", examples=["gate"])
    run_id: UUID | None = Field(
        default=None, alias="runId", description="Of one run.", examples=[EXAMPLE_RUN]
    )
    request_id: str = Field(
        default="",
        alias="requestId",
        max_length=700,
        pattern=NO_NUL,
        description="A question's own id, open or not; # is written %23 in an address.",
        examples=[f"release-approval#1#{EXAMPLE_DIGEST}"],
    )
    audience: Text = Field(
        default="",
        description="Whom it is for: user:NAME, group:NAME, perm:NAME, key:NAME or everyone.",
        examples=["group:Release"],
    )
    mine: bool = Field(
        default=False,
        description="Only what is for the caller to answer.",
        examples=[True],
    )
    q: Text = Field(
        default="", description="Part of the question or of its gate's id.", examples=["release"]
    )
