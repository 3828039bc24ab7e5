"""Questions over REST: ask, find, claim, answer, rescue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Final
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from gates import access, columns, queries, services, wire
from gates.answers.answer_schemas import ReceiptShape
from gates.errors import DefinitionRefused
from gates.models import Request
from gates.principals import Principal
from gates.receipts.sealed import need_unchanged
from gates.schemas import (
    DEFINITION,
    EXAMPLE_REQUEST,
    AskRequest,
    Claimed,
    ClaimRequest,
    History,
    ReleaseRequest,
    RequestFilter,
    RequestPage,
    RequestShape,
    SubmitRequest,
    WithReason,
)
from runs.kernel.gate import create_callback_gate
from runs.replies import caller, reply

router = Router(tags=["Requests"], by_alias=True)

RequestKey = Annotated[
    UUID, Path(alias="id", description="The `id` of the question.", example=EXAMPLE_REQUEST)
]
View = Callable[..., HttpResponse]
_LOST: Final = ["answered", "superseded", "cancelled", "expired"]
_FIND: Final = ["scope", "not-found"]
_ACT: Final = [*_FIND, "forbidden", "self-approval"]
_LOADED: Final = ("run", "audience", "responses")


def _refuses(*codes: str) -> dict[str, Any]:
    return {"x-refusals": list(codes)}


def _of_one(
    method: str, act: str, name: str, summary: str, response: Any, *codes: str
) -> Callable[[View], View]:
    """An operation on one question: its address, how it is described, and what it refuses."""
    return router.api_operation(
        [method],
        f"/requests/{{uuid:id}}{act}",
        operation_id=name,
        summary=summary,
        response=response,
        openapi_extra=_refuses(*codes),
    )


@router.post(
    "/requests",
    operation_id="askRequest",
    summary="Ask a question",
    response={200: RequestShape, 201: RequestShape},
    openapi_extra=_refuses("scope", "forbidden", "definition", "schema", "too-many-open"),
)
def ask_request(request: HttpRequest, payload: AskRequest) -> HttpResponse:
    """Put a question to people: 201 when it is new, 200 when it is the same question again.

    Text, schema, input, gate and version together are the question. A different question of the
    same gate in the same stream takes its place.
    """
    who = caller(request, "start")
    given = payload.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
    # `null` is an input like any other, and no presentation is an empty one.
    definition = {name: given.pop(name, None) for name in DEFINITION} | {"input": payload.input}
    stream = given.pop("stream")
    _is_what_it_says(definition, given.pop("requestId", None), given.pop("digest", None))
    row, created = services.post_request(definition, principal=who, stream=stream, routing=given)
    return reply(_wire(row, who), 201 if created else 200)


def _is_what_it_says(definition: dict[str, Any], request_id: Any, digest: Any) -> None:
    if request_id is None and digest is None:
        return
    try:
        made = create_callback_gate(definition)
    except ValueError:
        return  # the service says what is wrong with it
    if request_id not in (None, made.request_id):
        raise DefinitionRefused("requestId", f"This definition makes {made.request_id}.")
    if digest not in (None, made.digest):
        raise DefinitionRefused("digest", f"This definition has the digest {made.digest}.")


@router.get(
    "/requests",
    operation_id="listRequests",
    summary="Questions, the most urgent first",
    response=RequestPage,
    openapi_extra=_refuses("scope", "cursor"),
)
def list_requests(request: HttpRequest, wanted: Query[RequestFilter]) -> HttpResponse:
    """The questions the caller may see; the open ones, unless a status is asked for."""
    who = caller(request, "read")
    rows, following = _named(who, wanted) if wanted.request_id else _listed(who, wanted)
    prefetch_related_objects(rows, *_LOADED)
    return reply({"items": [wire.request(row, who) for row in rows], "next": following})


def _listed(who: Principal, wanted: RequestFilter) -> tuple[list[Request], str | None]:
    return queries.requests(
        who,
        status=wanted.status or "",
        kind=wanted.kind or "",
        run_id=wanted.run_id,
        audience=wanted.audience,
        mine=wanted.mine,
        q=wanted.q,
        cursor=wanted.cursor or None,
        limit=wanted.limit,
    )


def _named(who: Principal, wanted: RequestFilter) -> tuple[list[Request], None]:
    """The question of this name in each stream and run; there is no second page of those."""
    rows = access.visible_requests(who).filter(request_id=columns.request_id(wanted.request_id))
    if wanted.run_id is not None:
        rows = rows.filter(run=wanted.run_id)
    if wanted.status is not None:
        rows = rows.filter(status=wanted.status)
    return list(rows.order_by("-created_at", "pk")[: wanted.limit]), None


@_of_one("GET", "", "getRequest", "One question", RequestShape, *_FIND)
def get_request(request: HttpRequest, key: RequestKey) -> HttpResponse:
    """The question, who holds it, and its answers."""
    who = caller(request, "read")
    row = access.find(who, key)
    need_unchanged(row)
    return reply(_wire(row, who))


@_of_one("GET", "/history", "getRequestHistory", "What happened to a question", History, *_FIND)
def get_history(request: HttpRequest, key: RequestKey) -> HttpResponse:
    """Every event about it in order, refused attempts to answer included."""
    who = caller(request, "read")
    return reply({"items": wire.history(access.find(who, key), who)})


@_of_one("POST", "/claim", "claimRequest", "Take a question", Claimed, *_ACT, "claimed", *_LOST)
def claim_request(
    request: HttpRequest, key: RequestKey, payload: ClaimRequest | None = None
) -> HttpResponse:
    """Of many at once exactly one gets the token. A claim does not end by itself."""
    given = payload or ClaimRequest()
    who = _router(caller(request, "claim"), given.router_id)
    claimed = services.claim(key, principal=who, even_cancelled=given.even_cancelled)
    return reply({"ok": True, "claimToken": claimed.token, "routerId": claimed.request.holder})


@_of_one(
    "POST",
    "/release",
    "releaseRequest",
    "Give a claim back",
    RequestShape,
    *_ACT,
    "not-claimed",
    "not-owner",
)
def release_request(
    request: HttpRequest, key: RequestKey, payload: ReleaseRequest | None = None
) -> HttpResponse:
    """The question is free again, and the token is dead."""
    given = payload or ReleaseRequest()
    who = _router(caller(request, "claim"), given.router_id)
    return reply(_wire(services.release(key, principal=who, token=given.claim_token), who))


@_of_one(
    "POST",
    "/submit",
    "submitRequest",
    "Answer a question",
    ReceiptShape,
    *_ACT,
    "invalid",
    "claimed",
    "not-claimed",
    "not-owner",
    "stale",
    "team-answered",
    *_LOST,
)
def submit_request(request: HttpRequest, key: RequestKey, payload: SubmitRequest) -> HttpResponse:
    """Record the answer, once; the same answer again gets the first one's receipt.

    Without a claim token, claim and answer are one act. An answer that does not fit leaves a claim
    as it was. `next` says what follows: `resumed`, `recorded`, or a time.
    """
    who = _router(caller(request, "answer"), payload.router_id)
    receipt = services.submit(
        key,
        principal=who,
        token=payload.claim_token,
        digest=payload.digest,
        response=payload.response,
        even_cancelled=payload.even_cancelled,
        seen=payload.seen,
    )
    return reply(wire.receipt(receipt))


@_of_one(
    "POST",
    "/force-release",
    "forceReleaseRequest",
    "Take a claim from its holder",
    RequestShape,
    *_ACT,
    "not-claimed",
    "reason",
)
def force_release(request: HttpRequest, key: RequestKey, payload: WithReason) -> HttpResponse:
    """For operators, with a reason; the old token is dead."""
    who = caller(request, "operate")
    return reply(_wire(services.force_release(key, principal=who, reason=payload.reason), who))


@_of_one(
    "POST",
    "/withdraw",
    "withdrawRequest",
    "Take a question back",
    RequestShape,
    *_ACT,
    "reason",
    *_LOST,
)
def withdraw(request: HttpRequest, key: RequestKey, payload: WithReason) -> HttpResponse:
    """For operators, with a reason; a step that waited for it fails."""
    who = caller(request, "operate")
    return reply(_wire(services.withdraw(key, principal=who, reason=payload.reason), who))


def _wire(row: Request, who: Principal) -> dict[str, Any]:
    prefetch_related_objects([row], *_LOADED)
    return wire.request(row, who)


def _router(who: Principal, suffix: str | None) -> Principal:
    """A key's own router; a person is one router, whatever a body says."""
    if not who.key_name or who.router or suffix is None:
        return who
    return replace(who, actor=f"key:{who.key_name}/{suffix}")
