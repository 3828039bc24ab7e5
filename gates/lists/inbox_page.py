"""The list pane of the inbox: tabs with counts, filters as chips, rows, and the next page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.urls import reverse
from django.utils.http import urlencode

from gates import queries
from gates.lists import narrowing
from gates.pages.details import GateDetail
from gates.principals import Principal
from gates.teams.team_page import narrow_form

TABS: Final = {
    "mine": ("Mine", "Questions that you hold"),
    "unclaimed": ("Unclaimed", "Questions that you may answer and nobody holds"),
    "others": ("With others", "Questions that somebody else holds"),
    "asked": ("I asked", "Open questions of the runs you started"),
    "history": ("History", "Answered, expired and withdrawn questions"),
}

FIELDS: Final = ("q", "workflow", "gate", "kind", "team", "due")


def tab_of(detail: GateDetail) -> str:
    """The tab in which an open question stands."""
    if not detail.row.is_open:
        return "history"
    place = {"you": "mine", "other": "others"}.get(detail.claim_state, "unclaimed")
    return place if detail.permissions.answer or place == "others" else "asked"


def counts_of(who: Principal) -> dict[str, str]:
    """What stands behind each tab, as it is written there."""
    return {tab: count_text(number) for tab, number in queries.inbox_counts(who).items()}


def inbox_page(who: Principal, query: Mapping[str, str], tab: str = "") -> dict[str, Any]:
    """What gates/_list.html shows; `tab` is where to begin when the address names none."""
    tab = query.get("tab", "") or tab
    given = narrowing.given_in(query, FIELDS)
    if tab not in TABS:
        # What somebody began comes before what nobody has begun.
        tab = "mine" if queries.inbox_counts(who)["mine"] else "unclaimed"
    found = queries.inbox(
        who, tab, q=given.get("q", ""), filters=given, cursor=query.get("cursor") or None
    )
    here = reverse("gates:inbox")
    selecting = query.get("select") == "1" and found.tab in ("mine", "unclaimed")
    kept = {**given, **({"select": "1"} if selecting else {})}

    def url(**changes: str) -> str:
        wanted = {"tab": found.tab, **kept, **changes}
        text = urlencode({key: value for key, value in wanted.items() if value})
        return f"{here}?{text}"

    return {
        "tab": found.tab,
        "q": given.get("q", ""),
        "tabs": [
            {
                "key": key,
                "label": label,
                "title": about,
                "count": count_text(found.counts[key]) if key in found.counts else None,
                "url": url(tab=key, select=""),
                "active": key == found.tab,
            }
            for key, (label, about) in TABS.items()
        ],
        "filters": narrowing.chips(given, url),
        "narrow": narrow_form(
            who,
            "inbox",
            given,
            here,
            tab=found.tab,
            team_names=tuple(_teams_of(who)),
            kinds=None if found.tab == "history" else found.kinds,
        ),
        "selecting": selecting,
        "select_url": url(select="" if selecting else "1")
        if found.rows and found.tab in ("mine", "unclaimed")
        else "",
        # A row opened in a narrowed list keeps the list as it is, also after a reload.
        "row_query": f"?{urlencode({'tab': found.tab, **kept})}" if kept else "",
        "rows": found.rows,
        "next_url": url(cursor=found.next) if found.next else None,
        "empty_kind": "search" if given else found.tab,
        "list_url": url(),
        "clear_url": f"{here}?tab={found.tab}",
        "unclaimed_url": f"{here}?tab=unclaimed",
        "workflows_url": reverse("runs:workflow-list"),
    }


def _teams_of(who: Principal) -> list[str]:
    return [token.partition(":")[2] for token in who.tokens if token.startswith("group:")]


def count_text(number: int) -> str:
    """The number behind a tab; nothing where there is nothing, and no false precision."""
    if not number:
        return ""
    return f"{number}+" if number >= queries.COUNTED_TO else str(number)
