"""An answer given on the page: claimed and submitted as router `monitor` (gates.md G182)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from runs.drivers.ports import Callbacks
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JsonValueError, parse_json, thaw

ROUTER: Final = "monitor"
Reply = tuple[HTTPStatus, dict[str, Any]]


def answer(client: Callbacks, body: bytes) -> Reply:
    """What became of it; whatever is refused leaves the question as it was."""
    try:
        given = parse_json(body)
    except JsonValueError:
        return refused(HTTPStatus.BAD_REQUEST, "The body is no JSON.")
    request_id = given.get("requestId") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(request_id, str):
        return refused(HTTPStatus.BAD_REQUEST, "The body names no requestId.")
    pending = {request.request_id: request for request in client.list_pending()}
    if request_id not in pending:
        return refused(HTTPStatus.NOT_FOUND, "No question of that id is waiting.")
    return _submitted(client, pending[request_id], given.get("response"))


def _submitted(client: Callbacks, request: CallbackRequest, response: Any) -> Reply:
    claim = client.claim(request.request_id, ROUTER)
    if not claim.ok:
        return refused(HTTPStatus.CONFLICT, "Somebody else took the question.", kind=claim.kind)
    try:
        result = client.submit(
            request.request_id, claim.claim_token, ROUTER, request.digest, response
        )
    except Exception as error:  # noqa: BLE001 - a store may refuse in ways of its own; see below
        # Whatever the reason, nothing was recorded: the next answer must find the question free.
        client.release(request.request_id, claim.claim_token)
        return refused(HTTPStatus.BAD_REQUEST, str(error))
    if not result.ok:
        client.release(request.request_id, claim.claim_token)
        return refused(HTTPStatus.BAD_REQUEST, result.reason, kind=result.kind)
    return HTTPStatus.OK, {"ok": True, "response": thaw(result.response)}


def refused(status: HTTPStatus, reason: str, *, kind: str | None = None) -> Reply:
    """A refusal with its reason for people."""
    more = {} if kind is None else {"kind": kind}
    return status, {"ok": False, **more, "reason": reason}
