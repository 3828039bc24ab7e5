"""Runs that are over, with an answered question and a file, and all that is in their rows."""

from __future__ import annotations

from typing import Any

from gates import services
from gates.models import Notice, Request, Response
from runs import record
from runs.artifacts import store
from runs.kernel.events import EventKind
from runs.models import Event, Run, Step
from tests import factories


def over(**ask: Any) -> Run:
    """A run in which ada said no, so that it has failed."""
    row = factories.pending_gate(**ask)
    keep_file(row.run)
    answer(row)
    # As the sweep leaves it, which has told whoever wanted to know.
    Notice.objects.filter(run=row.run).delete()
    return Run.objects.get(pk=row.run_id)


def keep_file(run: Run, content: bytes = b"what it was about") -> str:
    """Keep a file and put it into the record; returns its digest."""
    digest, size = store.keep(content)
    facts = {"name": "a.txt", "digest": digest, "byteLength": size, "mediaType": "text/plain"}
    with record.turn(run.pk, surface="worker") as turn:
        turn.append(EventKind.ARTIFACT, ("release", "approve"), facts)
    return digest


def answer(row: Request) -> None:
    services.submit(
        row.pk,
        principal=factories.ada(),
        token=None,
        digest=row.digest,
        response={"approved": False, "note": "Später, bitte"},
    )


def everything(run: Run) -> dict[str, list[dict[str, Any]]]:
    """What the database holds of a run, but for keys that mean nothing."""
    rows = {
        "run": Run.objects.filter(pk=run.pk),
        "events": Event.objects.filter(run=run).order_by("seq"),
        "steps": Step.objects.filter(run=run).order_by("position"),
        "requests": Request.objects.filter(run=run).order_by("asked_seq"),
        "responses": Response.objects.filter(request__run=run).order_by("seq"),
    }
    return {
        name: [
            {key: value for key, value in row.items() if key != "id" or name == "requests"}
            for row in found.values()
        ]
        for name, found in rows.items()
    }
