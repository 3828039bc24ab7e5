from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.people.audiences import audience_for
from runs.people.principals import Principal
from runs.people.rights import Rights

pytestmark = pytest.mark.django_db


def permission(name: str) -> Permission:
    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


@pytest.fixture
def ada() -> User:
    """Somebody with a permission of her own and another by each of two groups."""
    user = User.objects.create_user("ada")
    user.user_permissions.add(permission("runs.view_run"))
    for name, shared in (("Release", "runs.change_run"), ("Ops", "gates.view_request")):
        group = Group.objects.create(name=name)
        group.permissions.add(permission(shared))
        user.groups.add(group)
    Group.objects.create(name="Others").permissions.add(permission("gates.change_request"))
    return user


def test_rights_are_what_django_says(ada: User) -> None:
    rights = Rights.of(ada.pk)

    assert rights is not None
    assert rights.permissions == ada.get_all_permissions()
    assert rights.groups == {"Release", "Ops"}
    assert (rights.username, rights.is_superuser) == ("ada", False)
    assert rights.has("runs.change_run")
    assert not rights.has("gates.change_request")


def test_a_superuser_may_everything(ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(is_superuser=True)

    rights = Rights.of(ada.pk)

    assert rights is not None
    assert rights.permissions == User.objects.get(pk=ada.pk).get_all_permissions()
    assert rights.has("gates.change_request")
    assert rights.has("of.nothing_there")


def test_nobody_and_somebody_sent_away_have_no_rights(ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(is_active=False, is_superuser=True)

    assert Rights.of(ada.pk) is None
    assert Rights.of(ada.pk + 1000) is None
    gone = Principal(actor=f"user:{ada.pk}", surface="api", user=ada)
    assert not gone.tokens
    assert not gone.has_perm("runs.view_run")
    assert not gone.is_in(audience_for(None).pk)


def test_an_audience_and_the_rights_are_read_together(ada: User) -> None:
    mine = audience_for({"groups": ["Release"], "users": ["somebody"]}).pk
    others = audience_for({"groups": ["Others"]}).pk
    who = Principal.for_user(ada)

    with CaptureQueriesContext(connection) as first:
        assert who.is_in(mine)
    with CaptureQueriesContext(connection) as then:
        assert who.is_in(mine)
        assert who.has_perm("runs.view_run")
        assert "perm:runs.change_run" in who.tokens
    with CaptureQueriesContext(connection) as another:
        assert not who.is_in(others)

    assert (len(first), len(then), len(another)) == (1, 0, 1)
