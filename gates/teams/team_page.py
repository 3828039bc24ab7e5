"""The pages of a team as the templates read them: its queue, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils.http import urlencode

from gates import queries
from gates.lists import narrowing, saved
from gates.principals import Principal
from gates.teams import calendars, groups, places, time_chart, times
from runs.kernel.worktime import DEFAULT
from runs.pages import words
from runs.plaintext import visible

FIELDS = ("q", "workflow", "gate", "kind", "due", "held")


def place_of(group: Group) -> str:
    """Under which name filters of this queue are saved."""
    return f"team:{group.pk}"


def queue_page(
    who: Principal, group: Group, query: Mapping[str, str], now: datetime
) -> dict[str, Any]:
    """What gates/team.html shows."""
    given = narrowing.given_in(query, FIELDS)
    found = queries.team_queue(
        group.name, principal=who, filters=given, cursor=query.get("cursor") or None
    )
    here = reverse("gates:team", args=[group.pk])

    def url(**changes: str) -> str:
        wanted = {name: value for name, value in {**given, **changes}.items() if value}
        return f"{here}?{urlencode(wanted)}" if wanted else here

    calendar = calendars.calendar_of(group)
    claim, answer = times.usual_times(group.name, now=now)
    return {
        "team": {
            "name": visible(group.name),
            "url": here,
            "free_count": count_text(found.counts["free"]),
            "held_count": count_text(found.counts["held"]),
            "claim_time_text": words.span(claim.median) if claim else "",
            "answer_time_text": words.span(answer.median) if answer else "",
            "times_url": reverse("gates:team-times", args=[group.pk]),
            "calendar_text": calendars.calendar_words(calendar) if calendar else "",
            "calendar_url": reverse("gates:team-calendar", args=[group.pk])
            if groups.may_change(who)
            else "",
            "places_text": places.in_words(group),
            "places_url": reverse("gates:team-places", args=[group.pk])
            if groups.may_change(who)
            else "",
        },
        "rows": found.rows,
        "next_url": url(cursor=found.next) if found.next else None,
        "filters": narrowing.chips(given, url),
        "narrow": narrow_form(who, place_of(group), given, here, held=True, kinds=found.kinds),
        "q": given.get("q", ""),
        "list_url": here,
        "inbox_url": reverse("gates:inbox"),
        "is_narrowed": bool(given),
    }


def narrow_form(
    who: Principal,
    place: str,
    given: Mapping[str, str],
    here: str,
    *,
    tab: str = "",
    held: bool = False,
    team_names: tuple[str, ...] = (),
    kinds: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The form that narrows a list, and the filters that this person has saved for it."""
    query = urlencode({**({"tab": tab} if tab else {}), **given})
    mine = saved.filters_of(who.user.pk, place) if who.user is not None else []
    return {
        "action": here,
        "tab": tab,
        "given": given,
        "selects": narrowing.choices(
            given,
            held=held,
            teams=team_names,
            counts=None
            if kinds is None
            else {kind: count_text(number) for kind, number in kinds.items()},
        ),
        "place": place,
        "query": query if given else "",
        "saved": [
            {
                "id": one.pk,
                "name": one.name,
                "url": f"{here}?{one.query}",
                "active": bool(given) and one.query == query,
            }
            for one in mine
        ],
        "save_url": reverse("gates:filter-save"),
    }


def count_text(number: int) -> str:
    """A number of a queue, which is counted so far and no further."""
    return f"{number}+" if number >= queries.QUEUE_TO else str(number)


def times_page(who: Principal, group: Group, by: str, now: datetime) -> dict[str, Any]:
    """What gates/team_times.html shows; `by` is day or week."""
    by = "week" if by == "week" else "day"
    calendar = calendars.calendar_of(group) or DEFAULT
    found = times.team_times(group.name, by=by, zone=calendar.zone, now=now)
    here = reverse("gates:team-times", args=[group.pk])
    return {
        "team": {"name": visible(group.name), "url": reverse("gates:team", args=[group.pk])},
        "by": by,
        "tabs": [
            {"label": label, "url": f"{here}?by={key}", "active": key == by}
            for key, label in (("day", "By day"), ("week", "By week"))
        ],
        "count": found.count,
        "is_cut": found.is_cut,
        "sample": times.SAMPLE,
        "zone": calendar.zone,
        "charts": [
            {
                "id": name,
                "title": title,
                "median": words.span(whole.median),
                "p90": words.span(whole.p90),
                **time_chart.chart(found.spans, name),
            }
            for name, title, whole in (
                ("claim", "Until somebody claims it", found.claim),
                ("answer", "Until it is answered", found.answer),
            )
            if whole is not None
        ],
        "rows": time_chart.rows(found.spans),
    }
