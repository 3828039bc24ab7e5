"""What a client says back: done, or refused with its kind."""

from __future__ import annotations

from dataclasses import dataclass

from runs.kernel.jsonable import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """A claim won, with its token, or refused, with the holder if there is one."""

    ok: bool
    claim_token: str | None = None
    kind: str | None = None
    router_id: str | None = None

    def to_wire(self) -> dict[str, JSONValue]:
        """The result as sent."""
        if self.ok:
            return {"ok": True, "claimToken": self.claim_token}
        return {"ok": False, "kind": self.kind, "routerId": self.router_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitResult:
    """An answer recorded, or refused with its kind and reason."""

    ok: bool
    response: JSONValue = None
    kind: str | None = None
    reason: str | None = None

    def to_wire(self) -> dict[str, JSONValue]:
        """The result as sent."""
        if self.ok:
            return {"ok": True, "response": self.response}
        return {"ok": False, "kind": self.kind, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    """A claim given back, or refused with its kind."""

    ok: bool
    kind: str | None = None

    def to_wire(self) -> dict[str, JSONValue]:
        """The result as sent."""
        return {"ok": True} if self.ok else {"ok": False, "kind": self.kind}
