"""Standing grants: a yes that holds for later calls too (interactions.md section 6)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel import clocks
from runs.kernel.actions import ALLOW_ALWAYS, ALLOW_CONVERSATION
from runs.kernel.jsonable import JSONValue

CONVERSATION: Final = "conversation"
PRINCIPAL: Final = "principal"
CATEGORY: Final = "category"
TENANT: Final = "tenant"
SCOPES: Final = (PRINCIPAL, TENANT, CATEGORY, CONVERSATION)
TOOL: Final = "tool"
MAX_DAYS: Final = 90
_DAY_MS: Final = 86_400_000
_GRANTS: Final = uuid.UUID("5b0f4f4e-3b0a-5d52-8f63-6a1a2f7f0c11")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One standing grant; times in ms since the epoch, `expires_at` None for no end.

    `match_type` says what `match_value` names: a tool, or a category of tools (I53).
    """

    grant_id: str
    scope: str
    match_type: str
    match_value: str
    principal: str = ""
    conversation: str = ""
    granted_at: int = 0
    expires_at: int | None = None
    revoked_at: int | None = None

    def is_active(self, now: int) -> bool:
        """Not revoked, and not at its end or past it (I50)."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def covers(self, tool: str, category: str, *, principal: str, conversation: str) -> bool:
        """Whether the grant is about such a call (I51, I53, I54)."""
        named = tool if self.match_type == TOOL else category
        if not named or named != self.match_value:
            return False
        match self.scope:
            case "conversation":
                theirs = not self.principal or principal == self.principal
                return theirs and bool(conversation) and conversation == self.conversation
            case "principal":
                return bool(principal) and principal == self.principal
        return self.scope in SCOPES


def find(
    grants: Iterable[Grant],
    tool: str,
    category: str,
    *,
    principal: str,
    conversation: str,
    now: int,
) -> Grant | None:
    """The grant under which the call may run: of several the newest, then by id (I52)."""
    fitting = [
        grant
        for grant in grants
        if grant.is_active(now)
        and grant.covers(tool, category, principal=principal, conversation=conversation)
    ]
    return max(fitting, key=lambda grant: (grant.granted_at, grant.grant_id), default=None)


def issued(
    run_id: str, request_id: str, about: Mapping[str, Any], decision: str, by: str, now: int
) -> dict[str, JSONValue] | None:
    """The grant that a decision makes, as its event tells it; None for one that makes none (I41).

    `about` is what was stored when the approval was asked for.
    """
    scope = {ALLOW_CONVERSATION: CONVERSATION, ALLOW_ALWAYS: PRINCIPAL}.get(decision)
    holder = about.get(scope or "")
    if scope is None or not holder:
        return None
    return {
        "grantId": str(uuid.uuid5(_GRANTS, f"{run_id}/{request_id}")),
        "scope": scope,
        "matchType": TOOL,
        "matchValue": str(about["tool"]),
        "principal": str(about.get("principal") or ""),
        "conversation": str(about.get("conversation") or "") if scope == CONVERSATION else "",
        "grantedBy": by,
        "sourceRequestId": request_id,
        "policyVersion": str(about.get("policyVersion") or ""),
        "grantedAt": clocks.iso(now),
        "expiresAt": clocks.iso(now + MAX_DAYS * _DAY_MS),
    }
