"""What can be started here."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.urls import reverse

from runs import words
from runs.access import startable_names, visible_runs, visible_workflows
from runs.models import Run, Workflow
from runs.plaintext import visible
from runs.principals import Principal


def workflow_rows(who: Principal) -> list[dict[str, Any]]:
    """The catalogue with each workflow's last runs."""
    offers: list[Workflow] = list(visible_workflows(who).order_by("title", "name"))
    startable = startable_names(who, offers)
    latest: dict[str, list[Run]] = defaultdict(list)
    for offer in offers:
        runs = visible_runs(who).filter(workflow=offer.name)
        latest[offer.name] = list(runs.order_by("-created_at")[:3])
    return [
        {
            "name": visible(offer.name),
            "title": visible(offer.title),
            "description": visible(offer.description),
            "error": visible(offer.error),
            "start_url": reverse("runs:start", args=[offer.name])
            if offer.name in startable and not offer.error
            else "",
            "last_runs": [
                {
                    "url": run.get_absolute_url(),
                    "status": run.status,
                    "status_word": words.RUN_WORDS[run.status],
                    "short": run.short,
                    "created_at": run.created_at,
                }
                for run in latest[offer.name]
            ],
        }
        for offer in offers
    ]
