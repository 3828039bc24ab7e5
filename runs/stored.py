"""The callback client over a run's own record (gates.md section 8).

It keeps nothing between calls: each operation opens a turn, folds, and records what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from runs import claims, record
from runs.kernel import callbacks, quorums
from runs.kernel.callbacks import ClaimResult, ReleaseResult, SubmitResult, WireEvent
from runs.kernel.events import CALLBACK_KINDS, EventKind, Path
from runs.kernel.gate import CallbackRequest, validate_callback_request
from runs.models import Event, Run
from runs.record import Turn
from runs.turns import folding


class RecordCallbacks:
    """The operations of the in-memory client, on the record of one run."""

    def __init__(
        self,
        run_id: UUID,
        *,
        path: Path = (),
        actor: str = "system",
        surface: str = "worker",
        guard: Callable[[], None] | None = None,
    ) -> None:
        """`guard` is called in every turn before anything is recorded; it may raise."""
        if not Run.objects.filter(pk=run_id).exists():
            raise record.RunUnknown(f"There is no run {run_id}.")
        self._run_id = run_id
        self._path = path
        self._actor = actor
        self._surface = surface
        self._guard = guard

    def post(self, request: CallbackRequest) -> None:
        request = validate_callback_request(request.to_wire())
        with self._turn() as turn:
            before = turn.state.callbacks
            append_all(turn, self._path, callbacks.post(before, request))

    def list_pending(self) -> list[CallbackRequest]:
        return list(self._state().pending())

    def claim(self, request_id: str, router_id: str) -> ClaimResult:
        with self._turn() as turn:
            mark = claims.claim_mark(turn.next_seq)
            result, events = callbacks.claim(turn.state.callbacks, request_id, router_id, mark)
            append_all(turn, self._path, events)
        if not result.ok:
            return result
        token = claims.claim_token(self._run_id, request_id, mark, router_id)
        return ClaimResult(ok=True, claim_token=token)

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: object,
        *,
        actor: Mapping[str, Any] | None = None,
    ) -> SubmitResult:
        with self._turn() as turn:
            needed = quorums.tally_of(turn.state, request_id).needed
            if needed > 1:
                text = f"{request_id} needs {needed} people, who answer through the service."
                return SubmitResult(ok=False, kind="invalid", reason=text)
            result, events = callbacks.submit(
                turn.state.callbacks,
                request_id,
                claim_token=self._mark(turn, request_id, claim_token, router_id),
                router_id=router_id,
                request_digest=request_digest,
                response=response,
            )
            append_all(turn, self._path, events)
        return result

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        with self._turn() as turn:
            held = turn.state.callbacks.requests.get(request_id)
            router_id = (held.router_id if held is not None else "") or ""
            mark = self._mark(turn, request_id, claim_token, router_id)
            result, events = callbacks.release(turn.state.callbacks, request_id, mark)
            append_all(turn, self._path, events)
        return result

    def supersede(self, request_id: str, superseded_by: str) -> None:
        with self._turn() as turn:
            events = callbacks.supersede(turn.state.callbacks, request_id, superseded_by)
            append_all(turn, self._path, events)

    def history(self, request_id: str | None = None) -> list[WireEvent]:
        """The callback events in order, without their envelopes."""
        kinds = [str(kind) for kind in CALLBACK_KINDS]
        rows = Event.objects.filter(run_id=self._run_id, kind__in=kinds).order_by("seq")
        wires: list[WireEvent] = [folding.to_event(row).callback_wire() for row in rows]
        if request_id is None:
            return wires
        return [wire for wire in wires if callbacks.is_about(wire, request_id)]

    @contextmanager
    def _turn(self) -> Iterator[Turn]:
        with record.turn(self._run_id, actor=self._actor, surface=self._surface) as turn:
            if self._guard is not None:
                self._guard()
            yield turn

    def _state(self) -> callbacks.CallbackState:
        last_seq = Run.objects.values_list("last_seq", flat=True).get(pk=self._run_id)
        return folding.state_at(self._run_id, last_seq).callbacks

    def _mark(self, turn: Turn, request_id: str, token: str, router_id: str) -> str:
        """The claim's mark for its own token; for any other token a mark no claim has."""
        held = turn.state.callbacks.requests.get(request_id)
        mark = (held.claim_token if held is not None else None) or ""
        if mark and claims.is_token(token, self._run_id, request_id, mark, router_id):
            return mark
        return f"not {mark}"


def append_all(turn: Turn, path: Path, events: list[WireEvent]) -> None:
    """Record callback events in a turn; a question that nobody bound stands where it was asked."""
    for wire in events:
        fields = {key: value for key, value in wire.items() if key != "kind"}
        turn.append(str(wire["kind"]), path, fields)
        if wire["kind"] == EventKind.REQUESTED:
            turn.inbox_changed = True
