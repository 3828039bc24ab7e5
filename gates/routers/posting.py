"""What goes to a router, and what its reply means."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import prefetch_related_objects

from gates import signing, wire
from gates.models import Request, Router, RouterCall
from gates.notify import outgoing
from gates.notify.errors import NotSent
from gates.principals import Principal
from runs.kernel.jsonable import JsonValueError, parse_json, thaw
from runs.shapes.routers import router_name

AGENT: Final = "Obversa-Router/1"
MAX_REPLY: Final = 1024 * 1024
LATER: Final = 202
_LOADED: Final = ("run", "audience", "responses")


class BadReply(Exception):
    """The service took the question and said nothing that answers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a question goes: a router of this installation, or the address of its author."""

    name: str
    url: str
    secret: str
    seconds: float
    sees_sensitive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, and whether the service says to have seen what is open; None: it comes later."""

    response: Mapping[str, Any]
    seen: bool


def target_of(row: Request) -> Target | None:
    """The target that the question's routing names; None when there is none by that name now."""
    given = row.routing.get("router")
    if isinstance(given, Mapping):
        secret = os.environ.get(str(given.get("secretEnv", "")), "")
        return Target(
            name=router_name(row.routing),
            url=str(given.get("url", "")),
            secret=secret,
            seconds=outgoing.SECONDS,
            sees_sensitive=False,
        )
    router = Router.objects.filter(name=given, enabled=True).first()
    if router is None:
        return None
    return Target(
        name=router.name,
        url=router.url,
        secret=router.secret,
        seconds=router.timeout_seconds,
        sees_sensitive=router.sees_sensitive,
    )


def ask(target: Target, call: RouterCall, row: Request, who: Principal) -> Reply | None:
    """Post the question; its answer, or None when it comes later. Raises NotSent or BadReply."""
    body = json.dumps(question(target, row, who), ensure_ascii=False).encode()
    try:
        signed = signing.signed_headers(target.secret, body, int(time.time()))
    except ValueError:
        raise NotSent("The router has no secret to sign with.", retryable=False) from None
    headers = {
        **signed,
        "User-Agent": AGENT,
        "Idempotency-Key": str(call.uid),
        "Obversa-Router": target.name,
        "Obversa-Attempt": str(call.attempts),
    }
    status, reply = outgoing.exchange(
        target.url, body, headers, seconds=target.seconds, limit=MAX_REPLY
    )
    return None if status == LATER else read_reply(reply)


def question(target: Target, row: Request, who: Principal) -> dict[str, Any]:
    """The question as the API shows it; what it declares sensitive only where that is allowed."""
    prefetch_related_objects([row], *_LOADED)
    told = wire.request(row, who)
    if target.sees_sensitive:
        told |= {"input": thaw(row.input), "masked": []}
    return told


def read_reply(body: bytes) -> Reply:
    """The answer in a reply: `{"response": {...}}`, and `"seen": true` for open findings."""
    if len(body) > MAX_REPLY:
        raise BadReply("The reply is too large.")
    try:
        given = parse_json(body)
    except JsonValueError as error:
        raise BadReply(f"The reply is no JSON: {error}") from None
    if not isinstance(given, dict) or not isinstance(given.get("response"), dict):
        raise BadReply("The reply has no object under response.")
    if given.keys() - {"response", "seen"} or not isinstance(given.get("seen", False), bool):
        raise BadReply("The reply has more than response and seen.")
    return Reply(response=given["response"], seen=given.get("seen") is True)
