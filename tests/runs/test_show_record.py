from __future__ import annotations

from io import StringIO
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from runs.models import Run
from tests import factories

pytestmark = pytest.mark.django_db


def show_record(*args: str) -> list[str]:
    out = StringIO()
    call_command("show_record", *args, stdout=out)
    return out.getvalue().splitlines()


def test_the_beginning_of_an_id_is_enough_where_no_other_run_has_it() -> None:
    run = factories.make_run()

    assert show_record(str(run.pk)[:13]) == show_record(str(run.pk))


def test_what_names_no_run_or_more_than_one_is_refused() -> None:
    for name in ("abcd0000-0000-4000-8000-000000000001", "abcd0000-0000-4000-8000-000000000002"):
        made = factories.external_request(stream=name).run
        Run.objects.filter(pk=made.pk).update(workflow=name)
        copy = Run.objects.get(pk=made.pk)
        copy.pk, copy.stream = UUID(name), f"{name}-copy"
        copy.save(force_insert=True)

    with pytest.raises(CommandError, match="More than one"):
        show_record("abcd0000")
    with pytest.raises(CommandError, match="no run"):
        show_record("dcba0000")
    for wrong in ("", "ab", "not-an-id"):
        with pytest.raises(CommandError, match="4 digits"):
            show_record(wrong)
