"""Audiences: who a workflow or a question is for, stored once per distinct set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from runs.kernel.jsonable import digest_hex
from runs.models import Audience, AudienceToken

EVERYONE: Final = "everyone"
PARTS: Final = {
    "users": "user",
    "groups": "group",
    "permissions": "perm",
    "keys": "key",
    "routers": "router",
}


class AudienceRefused(ValueError):
    """An audience has lists of names under users, groups, permissions, keys or routers."""

    code = "audience"


def tokens_of(spec: Mapping[str, Any] | None) -> list[str]:
    """The tokens of a spec `{"users": [...], "groups": [...], ...}`; everyone without one.

    Lists with nobody in them are refused: whoever writes a list means somebody.
    """
    tokens: set[str] = set()
    for part, names in (spec or {}).items():
        if part not in PARTS or isinstance(names, str) or not isinstance(names, Iterable):
            raise AudienceRefused(
                f"audience has {part!r}; it takes lists under {', '.join(PARTS)}."
            )
        for name in names:
            if not isinstance(name, str) or not name or len(name) > 150 or "\0" in name:
                raise AudienceRefused(f"audience names {name!r} under {part}, which is no name.")
            tokens.add(f"{PARTS[part]}:{name}")
    if spec and not tokens:
        raise AudienceRefused("audience names nobody; leave it out for everyone who is signed in.")
    return sorted(tokens) or [EVERYONE]


def audience_for(spec: Mapping[str, Any] | None) -> Audience:
    """The stored audience of the spec; made on first use."""
    tokens = tokens_of(spec)
    key = digest_hex(tokens)
    # One without tokens was cut short while it was made: it is finished here.
    found = Audience.objects.filter(key=key, tokens__token=tokens[0]).first()
    if found is not None:
        return found
    audience, _ = Audience.objects.get_or_create(key=key, defaults={"spec": dict(spec or {})})
    AudienceToken.objects.bulk_create(
        (AudienceToken(audience=audience, token=token) for token in tokens), ignore_conflicts=True
    )
    return audience


def audiences_with(tokens: Iterable[str]) -> list[int]:
    """The audiences that hold one of the tokens, by primary key."""
    found = AudienceToken.objects.filter(token__in=list(tokens))
    return list(found.values_list("audience_id", flat=True).distinct())


def members_of(audience: int) -> frozenset[str]:
    """The tokens that the audience with this key names."""
    found = AudienceToken.objects.filter(audience_id=audience)
    return frozenset(found.values_list("token", flat=True))
