"""What can be started here."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from django.db.models import OuterRef, QuerySet, Subquery
from django.urls import reverse

from runs.access import startable_names, visible_runs, visible_workflows
from runs.models import Run, Workflow
from runs.pages import words
from runs.people.principals import Principal
from runs.plaintext import visible

LAST_SHOWN: Final = 3


def workflow_rows(who: Principal) -> list[dict[str, Any]]:
    """The catalogue with each workflow's last runs."""
    visible_ones = visible_workflows(who)
    offers: list[Workflow] = list(visible_ones.order_by("title", "name"))
    startable = startable_names(who, offers)
    latest = _last_runs(who, visible_ones)
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


def _last_runs(who: Principal, offers: QuerySet[Workflow]) -> dict[str, list[Run]]:
    """The newest runs of each workflow that the reader may see: two statements for all of them."""
    seen = visible_runs(who).filter(workflow=OuterRef("name")).order_by("-created_at", "-pk")
    newest = {f"run_{at}": Subquery(seen.values("pk")[at : at + 1]) for at in range(LAST_SHOWN)}
    # An index leads to each run, where a window would read all runs there are.
    keys = [key for row in offers.annotate(**newest).values_list(*newest) for key in row if key]
    latest: dict[str, list[Run]] = defaultdict(list)
    for run in Run.objects.filter(pk__in=keys).order_by("-created_at", "-pk"):
        latest[run.workflow].append(run)
    return latest
