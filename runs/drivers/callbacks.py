"""The in-memory callback client, and the router that asks a function."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from runs.kernel import callbacks
from runs.kernel.callbacks import (
    CallbackState,
    ClaimResult,
    ReleaseResult,
    SubmitResult,
    WireEvent,
)
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import frozen_object

Responder = Callable[[CallbackRequest], Any]


class Claimable(Protocol):
    """What a router needs of a client, in memory or stored."""

    def claim(self, request_id: str, router_id: str) -> ClaimResult:
        """Take a pending request."""

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: object,
    ) -> SubmitResult:
        """Answer a claimed request."""

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """Give a claim back."""


class CallbackClient:
    """Holds requests and their history in memory; every operation is one step under a lock."""

    def __init__(self, seed: Iterable[object] | None = None) -> None:
        self._lock = threading.RLock()
        events = [frozen_object("The callback event", event) for event in (seed or ())]
        self._state = callbacks.fold_all(callbacks.empty(), events)
        self._events: list[WireEvent] = list(events)

    @property
    def state(self) -> CallbackState:
        """Where every request stands now, as a value that does not change later."""
        return self._state

    def post(self, request: CallbackRequest | Mapping[str, object]) -> None:
        """Ask a question; others of the same gate that are still open are superseded."""
        with self._lock:
            self._record(callbacks.post(self._state, request))

    def list_pending(self) -> list[CallbackRequest]:
        """The requests nobody holds and nobody has answered, first posted first."""
        return self._state.pending()

    def claim(self, request_id: str, router_id: str) -> ClaimResult:
        """Take a pending request; of many at once exactly one wins."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            result, events = callbacks.claim(self._state, request_id, router_id, token)
            self._record(events)
        return result

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: object,
        *,
        actor: Mapping[str, object] | None = None,
    ) -> SubmitResult:
        """Answer a claimed request; the actor is checked and not kept, for a question asks none."""
        if actor is not None:
            frozen_object("actor", actor)
        with self._lock:
            result, events = callbacks.submit(
                self._state,
                request_id,
                claim_token=claim_token,
                router_id=router_id,
                request_digest=request_digest,
                response=response,
            )
            self._record(events)
        return result

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """Give a claim back with its token."""
        with self._lock:
            result, events = callbacks.release(self._state, request_id, claim_token)
            self._record(events)
        return result

    def supersede(self, request_id: str, superseded_by: str) -> None:
        """Take a live request out of play."""
        with self._lock:
            self._record(callbacks.supersede(self._state, request_id, superseded_by))

    def history(self, request_id: str | None = None) -> list[WireEvent]:
        """All events in order, or those that happened to one request."""
        with self._lock:
            events = list(self._events)
        if request_id is None:
            return events
        return [event for event in events if callbacks.is_about(event, request_id)]

    def _record(self, events: list[WireEvent]) -> None:
        if events:
            self._state = callbacks.fold_all(self._state, events)
            self._events.extend(events)


def create_callback_client(seed: Iterable[object] | None = None) -> CallbackClient:
    """A client with no questions, or with those of an earlier history."""
    return CallbackClient(seed)


def replay_callback_client(events: Iterable[object]) -> CallbackClient:
    """The client that a history left behind; raise when it cannot have happened."""
    return CallbackClient(events)


def direct_router(
    client: Claimable, request: CallbackRequest, router_id: str, responder: Responder
) -> SubmitResult:
    """Claim the request, ask the function, submit what it says; a failed try frees the claim."""
    claim = client.claim(request.request_id, router_id)
    if not claim.ok or claim.claim_token is None:
        return _not_claimed(request, claim)
    with _claim_freed_on_failure(client, request, claim.claim_token) as attempt:
        response = responder(request)
        if inspect.isawaitable(response):
            response = _wait_for(response)
        return attempt.submit(router_id, response)


async def adirect_router(
    client: Claimable, request: CallbackRequest, router_id: str, responder: Responder
) -> SubmitResult:
    """As direct_router, awaiting the responder on the caller's own loop."""
    claim = client.claim(request.request_id, router_id)
    if not claim.ok or claim.claim_token is None:
        return _not_claimed(request, claim)
    with _claim_freed_on_failure(client, request, claim.claim_token) as attempt:
        response = responder(request)
        if inspect.isawaitable(response):
            response = await response
        return attempt.submit(router_id, response)


@dataclass(slots=True)
class _Attempt:
    """One try at answering under a claim."""

    client: Claimable
    request: CallbackRequest
    claim_token: str
    result: SubmitResult | None = None

    def submit(self, router_id: str, response: object) -> SubmitResult:
        self.result = self.client.submit(
            self.request.request_id, self.claim_token, router_id, self.request.digest, response
        )
        return self.result


@contextmanager
def _claim_freed_on_failure(
    client: Claimable, request: CallbackRequest, claim_token: str
) -> Iterator[_Attempt]:
    """Free the claim when nothing was submitted, or when the answer was refused as wrong."""
    attempt = _Attempt(client, request, claim_token)
    try:
        yield attempt
    finally:
        if attempt.result is None or attempt.result.kind == "invalid":
            client.release(request.request_id, claim_token)


def _not_claimed(request: CallbackRequest, claim: ClaimResult) -> SubmitResult:
    kind = "missing" if claim.kind == "missing" else "not-claimed"
    holder = f" by {claim.router_id}" if claim.router_id else ""
    reason = f"{request.request_id} could not be claimed: it is {claim.kind}{holder}."
    return SubmitResult(ok=False, kind=kind, reason=reason)


def _wait_for(response: Awaitable[object]) -> object:
    async def finish() -> object:
        return await response

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(finish())
    # This thread's loop is busy running us, so the answer is awaited on a loop of its own.
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(context.run, asyncio.run, finish()).result()
