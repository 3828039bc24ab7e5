"""What a person may do now, read with one statement: rights are asked for at every act."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from django.db import connection

# What Django's own ModelBackend would say, in one reading: the person comes five times.
_RIGHTS: Final = """
SELECT 'user', username, is_superuser FROM auth_user WHERE id = %s AND is_active
UNION ALL
SELECT 'group', held.name, FALSE
FROM auth_user_groups member JOIN auth_group held ON held.id = member.group_id
WHERE member.user_id = %s
UNION ALL
SELECT 'perm', kind.app_label || '.' || perm.codename, FALSE
FROM auth_user_user_permissions own
JOIN auth_permission perm ON perm.id = own.permission_id
JOIN django_content_type kind ON kind.id = perm.content_type_id
WHERE own.user_id = %s
UNION ALL
SELECT 'perm', kind.app_label || '.' || perm.codename, FALSE
FROM auth_user_groups member
JOIN auth_group_permissions shared ON shared.group_id = member.group_id
JOIN auth_permission perm ON perm.id = shared.permission_id
JOIN django_content_type kind ON kind.id = perm.content_type_id
WHERE member.user_id = %s
UNION ALL
SELECT 'perm', kind.app_label || '.' || perm.codename, FALSE
FROM auth_user person
JOIN auth_permission perm ON person.is_superuser
JOIN django_content_type kind ON kind.id = perm.content_type_id
WHERE person.id = %s
UNION ALL
SELECT 'audience', token, FALSE FROM runs_audiencetoken WHERE audience_id = {audience}
"""
PERSON_TIMES: Final = 5


def rights_sql(audience: str = "%s") -> str:
    """Rows for `Rights.read`; `audience` is what a statement around it calls that one's key."""
    return _RIGHTS.format(audience=audience)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Name, groups and permissions of somebody who may come in."""

    username: str
    is_superuser: bool
    groups: frozenset[str]
    permissions: frozenset[str]

    @classmethod
    def of(cls, user_id: int) -> Self | None:
        """The person's rights; None for somebody who is not there or may not come in."""
        return cls.and_audience(user_id, None)[0]

    @classmethod
    def and_audience(cls, user_id: int, audience: int | None) -> tuple[Self | None, frozenset[str]]:
        """The rights, and the tokens of an audience along with them."""
        with connection.cursor() as cursor:
            cursor.execute(rights_sql(), [*[user_id] * PERSON_TIMES, audience])
            return cls.read(cursor.fetchall())

    @classmethod
    def read(cls, found: Iterable[Sequence[Any]]) -> tuple[Self | None, frozenset[str]]:
        """Rights and tokens of what `rights_sql` found."""
        named: dict[str, set[str]] = {"user": set(), "group": set(), "perm": set()}
        named["audience"] = set()
        above = False
        for what, name, is_superuser in found:
            named[what].add(name)
            above = above or bool(is_superuser)
        rights = None
        if named["user"]:
            rights = cls(
                username=named["user"].pop(),
                is_superuser=above,
                groups=frozenset(named["group"]),
                permissions=frozenset(named["perm"]),
            )
        return rights, frozenset(named["audience"])

    def has(self, permission: str) -> bool:
        return self.is_superuser or permission in self.permissions
