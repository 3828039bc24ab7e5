"""Questions over REST as they pass from hand to hand: assign, delegate, and break the glass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import ConfigDict, Field

from gates import services, wire
from gates.answers.answer_schemas import ReceiptShape
from gates.api import RequestKey
from gates.models import Request
from gates.principals import Principal
from gates.schemas import EXAMPLE_DIGEST, Digest, RequestShape, RouterId, Token
from runs.replies import caller, reply
from runs.schemas import Body, Json, Name, Reason

router = Router(tags=["Requests"], by_alias=True)
_ACT: Final = ["scope", "not-found", "forbidden"]
_LOST: Final = ["answered", "superseded", "cancelled", "expired"]


class AssignRequest(Body):
    """Whom to give the question to."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"to": "ada", "reason": "she knows the release"}]}
    )

    to: Name = Field(description="The name somebody signs in by.")
    reason: str = Field(
        default="", max_length=2_000, description="Needed to take it from a holder."
    )


class DelegateRequest(AssignRequest):
    """Whom to hand it on to; the holder itself needs no token."""

    claim_token: Token = None
    router_id: RouterId = None


class BreakGlassRequest(Body):
    """The answer, and why somebody gives it who was not asked."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "digest": EXAMPLE_DIGEST,
                    "response": {"approved": True},
                    "reason": "the site is down",
                }
            ]
        }
    )

    digest: Digest = Field(description="The digest of the question that was read.")
    response: Json = Field(description="What the question's `responseSchema` asks for.")
    reason: Reason
    seen: bool = Field(default=False, description="Its open findings were read.")


@router.post(
    "/requests/{uuid:id}/assign",
    operation_id="assignRequest",
    summary="Give a question to a person",
    response=RequestShape,
    openapi_extra={
        "x-refusals": [*_ACT, "self-approval", "claimed", "not-assignable", "reason", *_LOST]
    },
)
def assign_request(request: HttpRequest, key: RequestKey, payload: AssignRequest) -> HttpResponse:
    """They hold it then, as if they had claimed it.

    For operators and for people who may answer it; from a holder only operators take it.
    """
    is_operators = request.auth.has_scope("operate")  # type: ignore[attr-defined]  # ninja puts it there
    who = caller(request, "operate" if is_operators else "claim")
    row = services.assign(key, principal=who, to=payload.to, reason=payload.reason)
    return reply(_wire(row, who))


@router.post(
    "/requests/{uuid:id}/delegate",
    operation_id="delegateRequest",
    summary="Hand a question on to a person",
    response=RequestShape,
    openapi_extra={
        "x-refusals": [*_ACT, "self-approval", "not-claimed", "not-owner", "not-assignable", *_LOST]
    },
)
def delegate_request(
    request: HttpRequest, key: RequestKey, payload: DelegateRequest
) -> HttpResponse:
    """For the holder of the claim, whose token is dead afterwards."""
    who = _router(caller(request, "claim"), payload.router_id)
    row = services.delegate(
        key, principal=who, to=payload.to, reason=payload.reason, token=payload.claim_token
    )
    return reply(_wire(row, who))


@router.post(
    "/requests/{uuid:id}/break-glass",
    operation_id="breakGlassRequest",
    summary="Answer in an emergency what others were asked",
    response=ReceiptShape,
    openapi_extra={"x-refusals": [*_ACT, "invalid", "reason", "stale", *_LOST]},
)
def break_glass_request(
    request: HttpRequest, key: RequestKey, payload: BreakGlassRequest
) -> HttpResponse:
    """For a signed-in person with the permission, never for a key. The run is marked for good."""
    receipt = services.break_glass(
        key,
        principal=caller(request, "answer"),
        digest=payload.digest,
        response=payload.response,
        reason=payload.reason,
        seen=payload.seen,
    )
    return reply(wire.receipt(receipt))


def _wire(row: Request, who: Principal) -> dict[str, Any]:
    prefetch_related_objects([row], "run", "audience", "responses")
    return wire.request(row, who)


def _router(who: Principal, suffix: str | None) -> Principal:
    """A key's own router; a person is one router, whatever a body says."""
    if not who.key_name or suffix is None:
        return who
    return replace(who, actor=f"key:{who.key_name}/{suffix}")
