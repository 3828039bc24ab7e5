from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from runs import access
from runs.models import Workflow
from runs.people.audiences import audience_for
from runs.people.principals import Principal
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def guarded() -> Workflow:
    return Workflow.objects.create(
        name="guarded",
        title="Guarded",
        audience=audience_for(None),
        starters=audience_for({"permissions": ["runs.add_run"]}),
    )


def test_everybody_sees_a_workflow_that_only_its_starters_start(guarded: Workflow) -> None:
    person = factories.user("ada")
    who = Principal.for_user(person)
    assert guarded in access.visible_workflows(who)
    with pytest.raises(access.Forbidden, match="not yours to start"):
        access.startable_or_404(who, "guarded")

    person.user_permissions.add(Permission.objects.get(codename="add_run"))
    trusted = Principal.for_user(type(person).objects.get(pk=person.pk))
    assert access.startable_or_404(trusted, "guarded") == guarded


def test_a_key_of_nobody_starts_what_its_scope_allows(guarded: Workflow) -> None:
    assert access.may_start(Principal.for_key("deploy-bot", ["read", "start"]), guarded)
    assert not access.may_start(Principal.for_key("deploy-bot", ["read"]), guarded)


def test_the_shipped_release_is_started_by_those_who_may_add_runs() -> None:
    from runs import registry

    registry.refresh()
    release = Workflow.objects.get(name="release")
    assert not access.may_start(Principal.for_user(factories.user("cyd")), release)
    admin = factories.user("root")
    admin.is_superuser = True
    admin.save()
    assert access.may_start(Principal.for_user(admin), release)
