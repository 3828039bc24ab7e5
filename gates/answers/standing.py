"""How a question stands with the people who may answer it, for one reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import Q

from gates import access, columns
from gates.actions import cards
from gates.lists.rows import decision_label
from gates.models import Request, Response
from gates.principals import Principal, actor_label, actor_labels
from gates.reviews import rich
from runs.kernel.quorums import tally_of
from runs.models import AudienceToken
from runs.plaintext import visible
from runs.turns import folding

SHOWN: Final = 12
LISTED: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """One person's answer; `decision` and `note` are strangers' texts."""

    actor: str
    label: str
    decision: str
    verdict: str
    note: str
    at: datetime
    deputy_label: str = ""
    overrides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Who has answered and who may yet, and what this reader may do about it."""

    needed: int = 1
    voices: list[Voice] = field(default_factory=list)
    mine: Voice | None = None
    rules: list[str] = field(default_factory=list)
    eligible: list[str] = field(default_factory=list)
    eligible_more: int = 0
    names: list[tuple[str, str]] = field(default_factory=list)
    may_assign: bool = False
    may_delegate: bool = False
    may_break_glass: bool = False
    deputy_words: str = ""
    barred: str = ""
    override: Mapping[str, Any] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several people have to answer."""
        return self.needed > 1

    @property
    def count(self) -> int:
        return len([one for one in self.voices if not one.overrides])

    @property
    def quorum(self) -> str:
        """How far it is, as `1 of 2`; nothing where one answer is enough."""
        return f"{self.count} of {self.needed}" if self.is_shared else ""

    @property
    def left(self) -> int:
        return max(0, self.needed - self.count)


def standing_of(who: Principal, row: Request, *, holds: bool) -> Standing:
    """The question's standing; two or three statements, however many people there are."""
    has_answers = row.needed > 1 or row.status == Request.Status.ANSWERED
    given = list(Response.objects.filter(request=row).order_by("seq")) if has_answers else []
    override = row.routing.get("override")
    by = override.get("by", "") if isinstance(override, Mapping) else ""
    labels = actor_labels([by, *(actor for one in given for actor in (one.actor, one.deputy_for))])
    voices = [_voice(one, labels) for one in given]
    person = access.person_of(who)
    seats = {actor for one in given for actor in (one.actor, one.deputy_for) if actor}
    refusal = access.refusal_to_answer(who, row)
    place = access.place_of(who, row) if refusal is None else access.Place()
    is_open = row.is_open
    assigns = is_open and access.refusal_to_assign(who, row) is None
    assigns = assigns and not holds and (row.holder == "" or access.may_operate(who))
    people = _people(row, seats) if is_open and (row.needed > 1 or assigns or holds) else []
    return Standing(
        needed=row.needed,
        voices=voices,
        mine=next(
            (
                voice
                for voice, one in zip(voices, given, strict=True)
                if person in (one.actor, one.deputy_for) and not one.overrides
            ),
            None,
        ),
        rules=_rules(row),
        eligible=[label for _, label in people[:SHOWN]],
        eligible_more=max(0, len(people) - SHOWN),
        names=people,
        may_assign=assigns,
        may_delegate=is_open and holds,
        # Whoever can simply answer needs no emergency.
        may_break_glass=is_open
        and (refusal is not None or row.needed > 1)
        and access.refusal_to_override(who) is None,
        deputy_words=_deputy_words(place),
        barred=_barred(row, refusal, place) if is_open else "",
        override=None if not by else _override(override, labels[by]),
    )


def _voice(one: Response, labels: Mapping[str, str]) -> Voice:
    note = one.response.get("note") if isinstance(one.response, Mapping) else None
    return Voice(
        actor=one.actor,
        label=labels[one.actor],
        decision=visible(decision_label(one.response)),
        verdict=_verdict(one.response),
        note=visible(note if isinstance(note, str) else rich.words_of(one.response)),
        at=one.at,
        deputy_label=labels[one.deputy_for] if one.deputy_for else "",
        overrides=one.overrides,
    )


def _verdict(response: Any) -> str:
    approved = response.get("approved") if isinstance(response, Mapping) else None
    if isinstance(approved, bool):
        return "yes" if approved else "no"
    return cards.verdict_of(response) or rich.verdict_of(response)


def _rules(row: Request) -> list[str]:
    rules = []
    if row.needed > 1:
        each = ", each of another team" if row.routing.get("onePerTeam") is True else ""
        rules.append(f"{row.needed} distinct people have to answer{each}; one no is enough.")
    if access.bars_requester(row.routing):
        rules.append("Whoever asked, or started the run, cannot answer.")
    return rules


def _people(row: Request, seats: Iterable[str]) -> list[tuple[str, str]]:
    """Whom the audience names and who has not answered yet: sign-in name and name, at most 50.

    Nobody is listed where everybody who is signed in may answer.
    """
    tokens = AudienceToken.objects.filter(audience=row.audience_id)
    wanted = Q()
    for token in tokens.values_list("token", flat=True):
        kind, _, name = token.partition(":")
        match kind:
            case "user":
                wanted |= Q(username=name)
            case "group":
                wanted |= Q(groups__name=name)
            case "perm":
                app, _, code = name.partition(".")
                own = Q(
                    user_permissions__content_type__app_label=app, user_permissions__codename=code
                )
                held = Q(
                    groups__permissions__content_type__app_label=app,
                    groups__permissions__codename=code,
                )
                wanted |= own | held | Q(is_superuser=True)
    if not wanted:
        return []
    gone = {int(seat[5:]) for seat in {*seats, *_askers(row)} if seat.startswith("user:")}
    found = User.objects.filter(wanted, is_active=True).exclude(pk__in=gone)
    people = found.order_by("username").distinct()[:LISTED]
    return [(user.username, visible(user.get_full_name() or user.username)) for user in people]


def _askers(row: Request) -> tuple[str, ...]:
    return (row.asked_by, row.run.started_by) if access.bars_requester(row.routing) else ()


def _deputy_words(place: access.Place) -> str:
    if not place.deputy_for:
        return ""
    return f"You answer in the place of {actor_label(place.deputy_for)}, who is away."


def _barred(row: Request, refusal: Exception | None, place: access.Place) -> str:
    """Why somebody of the audience may not answer this one, where they may not."""
    if isinstance(refusal, access.SelfApproval):
        return str(refusal)
    if refusal is not None or row.routing.get("onePerTeam") is not True:
        return ""
    state = folding.state_at(row.run_id, row.run.last_seq)
    tally = tally_of(state, columns.true_id(row, state.callbacks.requests))
    if not tally.given or tally.advances(place.teams):
        return ""
    return "Your team has answered; it waits for somebody of another team."


def _override(told: Mapping[str, Any], label: str) -> Mapping[str, Any]:
    return {
        "label": label,
        "reason": visible(str(told.get("reason", ""))),
        "at": columns.time_of(told.get("at")),
    }
