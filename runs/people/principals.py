"""Who is asking: a person or a key, and through which surface."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from runs.people.audiences import EVERYONE, audiences_with, members_of
from runs.people.rights import Rights

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True)
class Principal:
    """One caller. `scopes` is None for a person, who may do what their rights say."""

    SURFACES: ClassVar = ("browser", "api", "admin", "command", "router")
    ROUTER_SCOPES: ClassVar = frozenset({"read", "claim", "answer"})

    actor: str
    surface: str
    user: User | None = None
    key_name: str = ""
    scopes: frozenset[str] | None = None
    # The service this caller is, and then it is nobody else.
    router: str = ""
    # Who is in an audience, as far as this caller asked.
    _members: dict[int, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def for_user(cls, user: Any, surface: str = "browser") -> Principal:
        """The signed-in person; an anonymous or inactive one has no rights at all."""
        known = user if user.is_authenticated and user.is_active else None
        actor = f"user:{user.pk}" if known is not None else "nobody"
        return cls(actor=actor, surface=surface, user=known)

    @classmethod
    def for_key(
        cls, name: str, scopes: Iterable[str], user: Any = None, suffix: str = ""
    ) -> Principal:
        """A key, acting for its user when it has one; `suffix` tells its own routers apart."""
        actor = f"key:{name}/{suffix}" if suffix else f"key:{name}"
        known = user if user is not None and user.is_active else None
        allowed = frozenset(scopes) if user is None or known is not None else frozenset()
        return cls(actor=actor, surface="api", user=known, key_name=name, scopes=allowed)

    @classmethod
    def for_router(cls, name: str, *, key_name: str = "", scopes: Iterable[str] = ()) -> Principal:
        """A service that questions go to: in a reply to us, or with its key over the API."""
        wanted = cls.ROUTER_SCOPES.intersection(scopes) if key_name else cls.ROUTER_SCOPES
        surface = "api" if key_name else "router"
        return cls(
            actor=f"router:{name}", surface=surface, key_name=key_name, scopes=wanted, router=name
        )

    @property
    def is_known(self) -> bool:
        return self.user is not None or bool(self.key_name or self.router)

    @cached_property
    def tokens(self) -> frozenset[str]:
        """What an audience may name this caller by (runs/people/audiences.py)."""
        if not self.is_known:
            return frozenset()
        if self.router:
            # An audience names a service or does not mean it: everyone is every person.
            return frozenset({f"router:{self.router}"})
        tokens = {EVERYONE}
        # Anybody may make a key of their own, by any free name: it gets no more than its maker has.
        if self.key_name and self.user is None:
            tokens.add(f"key:{self.key_name}")
        if self.user is not None:
            if self.rights is None:
                return frozenset()
            tokens.add(f"user:{self.rights.username}")
            tokens |= {f"group:{name}" for name in self.rights.groups}
            tokens |= {f"perm:{name}" for name in self.rights.permissions}
        return frozenset(tokens)

    @cached_property
    def audiences(self) -> list[int]:
        """The audiences that name this caller, by primary key; asked once."""
        return audiences_with(self.tokens)

    @cached_property
    def rights(self) -> Rights | None:
        """What the person behind this caller may do, as it was when first asked."""
        return None if self.user is None else Rights.of(self.user.pk)

    def is_in(self, audience: int) -> bool:
        """Whether the audience with this key names this caller."""
        if audience not in self._members:
            self._ask_about(audience)
        return not self.tokens.isdisjoint(self._members[audience])

    def _ask_about(self, audience: int) -> None:
        if self.user is None or "rights" in self.__dict__:
            self._members[audience] = members_of(audience)
            return
        # Rights and audience in one reading, for whoever has not asked for either.
        rights, self._members[audience] = Rights.and_audience(self.user.pk, audience)
        self.__dict__["rights"] = rights

    def learn(self, audience: int, members: frozenset[str], rights: Rights | None) -> None:
        """Take what was read along with something else, unless it was asked before."""
        self._members.setdefault(audience, members)
        self.__dict__.setdefault("rights", rights)

    def has_perm(self, permission: str) -> bool:
        return self.rights is not None and self.rights.has(permission)

    def has_scope(self, scope: str) -> bool:
        """A person has every scope; a key has those it was made with."""
        return self.is_known if self.scopes is None else scope in self.scopes

    @property
    def names(self) -> tuple[str, ...]:
        """What a record may call this caller: a person's key acts for the person."""
        if self.key_name and self.user is not None:
            return (self.actor, f"user:{self.user.pk}")
        return (self.actor,)

    def owns(self, actor: str) -> bool:
        """True when `actor` is this caller, a router of the same key, or whose key it is."""
        is_key = bool(self.key_name) and not self.router
        if is_key and actor.split("/", maxsplit=1)[0] == f"key:{self.key_name}":
            return True
        return actor in self.names
