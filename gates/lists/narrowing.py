"""How lists of questions are narrowed: by words, and by the fields of the page's address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from gates.lists.saved import MAX_VALUE
from gates.models import Request
from runs.models import Run
from runs.people.audiences import audiences_with
from runs.plaintext import visible

SOON: Final = timedelta(hours=2)
# As they stand in an address, in the order in which their chips stand on the page.
FIELDS: Final = ("q", "workflow", "gate", "kind", "team", "due", "held")
_NAMES: Final = {"q": "search"}
_DUE: Final = (("overdue", "overdue"), ("soon", "overdue or within two hours"))
_HELD: Final = (("free", "by nobody"), ("taken", "by somebody"))


def given_in(address: Mapping[str, str], fields: Iterable[str] = FIELDS) -> dict[str, str]:
    """What the address says of these fields; what it leaves out is not there."""
    found = {name: address.get(name, "").replace("\0", "").strip()[:MAX_VALUE] for name in fields}
    return {name: value for name, value in found.items() if value}


def chips(given: Mapping[str, str], url: Callable[..., str]) -> list[dict[str, str]]:
    """One chip for each field that narrows, with the address without it."""
    return [
        {
            "label": visible(f"{_NAMES.get(name, name)}: {value}"),
            "remove_url": url(**{name: ""}),
        }
        for name, value in given.items()
    ]


def choices(
    given: Mapping[str, str],
    *,
    teams: Iterable[str] = (),
    held: bool = False,
    counts: Mapping[str, str] | None = None,
) -> Any:
    """The selects of the form that narrows a list; `counts` has the number of each kind."""
    kinds = [(kind.value, _kind_words(kind, counts)) for kind in Request.Kind]
    selects = [("kind", "Kind", kinds), ("due", "Due", _DUE)]
    named = sorted(set(teams))
    if named:
        selects.insert(1, ("team", "Team", [(name, visible(name)) for name in named]))
    if held:
        selects.append(("held", "Held", _HELD))
    return [
        {
            "name": name,
            "label": label,
            "options": [
                {"value": value, "label": words, "selected": given.get(name) == value}
                for value, words in options
            ],
        }
        for name, label, options in selects
    ]


def _kind_words(kind: Request.Kind, counts: Mapping[str, str] | None) -> str:
    words = kind.label.lower()
    return words if counts is None else f"{words} ({counts.get(kind.value, '0')})"


def narrow(given: Mapping[str, str]) -> Q:
    """The questions that fit every field; unknown and empty ones narrow nothing."""
    given = {name: value.replace("\0", "") for name, value in given.items() if value}
    wanted = search(given.get("q", ""))
    if "workflow" in given:
        wanted &= Q(run__workflow=given["workflow"])
    if "gate" in given:
        wanted &= Q(gate_id=given["gate"])
    if given.get("kind") in Request.Kind.values:
        wanted &= Q(kind=given["kind"])
    if "team" in given:
        wanted &= Q(audience__in=audiences_with([f"group:{given['team']}"]))
    if "asked_by" in given:
        wanted &= Q(asked_by=given["asked_by"])
    if given.get("due") == "overdue":
        wanted &= Q(due_order__lt=timezone.now())
    elif given.get("due") == "soon":
        wanted &= Q(due_order__lt=timezone.now() + SOON)
    if given.get("held") == "free":
        wanted &= Q(status=Request.Status.PENDING)
    elif given.get("held") == "taken":
        wanted &= Q(status=Request.Status.CLAIMED)
    return wanted


def looks_closer(given: Mapping[str, str]) -> bool:
    """Whether something is asked that no index of a list answers."""
    return any(given.get(name) for name in ("q", "workflow", "gate", "kind", "due"))


def search(q: str) -> Q:
    """Words anywhere in the question, or the start of a fingerprint or of a run's id."""
    wanted = Q()
    for word in q.replace("\0", "").split()[:8]:
        found = (
            Q(decision_text__icontains=word)
            | Q(gate_id__icontains=word)
            | Q(run__workflow__icontains=word)
            | Q(run__stream__icontains=word)
        )
        hexadecimal = word.lower().replace("-", "")
        if len(word) >= 4 and all(letter in "0123456789abcdef" for letter in hexadecimal):
            found |= Q(digest__startswith=hexadecimal) | Q(run__id__in=_runs_named(hexadecimal))
        wanted &= found
    return wanted


def _runs_named(start: str) -> list[UUID]:
    """Runs whose id begins so: a range of ids, which every database can look up."""
    start = start[:32]
    low, high = UUID(start.ljust(32, "0")), UUID(start.ljust(32, "f"))
    return list(Run.objects.filter(pk__gte=low, pk__lte=high).values_list("pk", flat=True)[:20])
