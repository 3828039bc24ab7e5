"""A workflow whose work a person reviews, and how they answer it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.test import Client
from django.urls import reverse

from gates import services
from gates.models import Request
from gates.principals import Principal
from runs import fn_job, human_review, loop, pipeline
from runs.models import Run
from tests import factories, flows
from tests.pages import client_of

OLD = "one\ntwo\nthree\n"
NEW = "one\nzwei\nthree\nfour\n"
CHANGES: dict[str, Any] = {
    "src/a.py": {"old": OLD, "new": NEW},
    "b.md": {"old": None, "new": "b\n"},
}
WITH_CHANGES = {"changes": CHANGES}


def written(seen: list[Any] | None = None, *, material: Any = None) -> Any:
    """A loop: a writer that notes what came back to it, and ada's review of its change."""

    def write(ctx: Any) -> str:
        review = None if ctx.last_review is None else ctx.last_review.data
        if seen is not None:
            seen.append(review)
        return f"draft {ctx.iteration}"

    review = human_review(
        "review",
        "Is the change right?",
        input=WITH_CHANGES if material is None else material,
        audience=factories.FOR_ADA,
    )
    return pipeline(
        "paper",
        [
            {"name": "draft", "job": loop("draft", fn_job("write", write), review=review, max=3)},
            {"name": "ship", "job": fn_job("ship", lambda _ctx: "shipped")},
        ],
    )


def asked(seen: list[Any] | None = None, *, material: Any = None) -> tuple[Run, Request]:
    """The run as it waits for ada, and its question."""
    run = flows.ran(written(seen, material=material))
    return run, open_question(run)


def open_question(run: Run) -> Request:
    return Request.objects.select_related("run").get(run=run, status__in=Request.OPEN)


def said(body: str = "Why?", **anchor: Any) -> dict[str, Any]:
    """A comment on a line."""
    return {"anchor": {"target": "src/a.py", "side": "new", "position": 2, **anchor}, "body": body}


def response(*comments: Any, decision: str = "changes-requested", prompt: str = "x") -> Any:
    return {
        "feedback": {"annotations": list(comments)},
        "prompt": prompt,
        "decision": decision,
    }


def submit(row: Request, given: Any, who: Principal | None = None) -> Any:
    return services.submit(
        row.pk, principal=who or factories.ada(), token=None, digest=row.digest, response=given
    )


def holding(row: Request) -> Client:
    """Ada's browser, with the question in her hands."""
    services.claim(row.pk, principal=factories.ada())
    return client_of(factories.ada())


def press(
    client: Client,
    row: Request,
    decision: str | None,
    fields: Mapping[str, str] | None = None,
    *,
    comments: list[Any] | None = None,
    hx: bool = False,
) -> Any:
    """Press a verdict of the form, with what was typed beside it."""
    sent = {"digest": row.digest, **(fields or {})}
    if decision is not None:
        sent["f-decision"] = decision
    if comments is not None:
        sent["f-comments"] = json.dumps(comments)
    return client.post(
        reverse("gates:answer", args=[row.pk]),
        urlencode(sent),
        content_type="application/x-www-form-urlencoded",
        headers={"HX-Request": "true"} if hx else {},
    )
