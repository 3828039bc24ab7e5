"""A question beside the one it replaces: which fields changed, and what was said then."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.evidence.changes import Change, changes_between, compared
from gates.models import Request
from tests import factories
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db
BEFORE = {"version": "2.3", "commits": ["a", "b"], "notes": "x"}
AFTER = {"version": "2.4", "commits": ["a", "b"], "notes": "y"}


def ask(about: Any, **more: Any) -> Request:
    return factories.external_request(stream="ops", input=about, **more)


def answered(row: Request, *, approved: bool = True) -> None:
    services.submit(
        row.pk,
        principal=factories.ada(),
        token=None,
        digest=row.digest,
        response={"approved": approved},
    )


def page_for_ada(row: Request) -> Page:
    return page_of(client_of(factories.ada()).get(row.get_absolute_url()))


def changes_of(row: Request) -> str:
    told = page_for_ada(row).by_id(f"gate-{row.pk}-changes").text
    return told.replace(" ;", ";").replace("( ", "(").replace(" )", ")")


def test_it_says_which_answered_question_it_replaces_and_counts_the_fields() -> None:
    answered(ask(BEFORE))
    told = changes_of(ask(AFTER))

    assert "This replaces a question that you answered" in told
    assert "(approved); two fields changed." in told
    assert "/version before: 2.3 after: 2.4" in told
    assert "/commits" not in told


def test_a_question_that_nobody_answered_or_that_was_withdrawn_is_called_so() -> None:
    ask(BEFORE)
    second = ask(AFTER)
    assert "a question that nobody answered; two fields changed." in changes_of(second)

    services.withdraw(second.pk, principal=factories.operator(), reason="wrong")
    assert "This replaces a question that was withdrawn; two fields" in changes_of(
        ask(BEFORE | {"n": 1, "version": "2.4"})
    )


def test_the_text_and_the_form_of_the_answer_are_compared_too() -> None:
    ask(BEFORE, text="Ship 2.3?")
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    told = changes_of(ask(BEFORE, text="Ship 2.4?", schema=schema))

    assert "its text changed, the form of the answer changed." in told
    assert "before: Ship 2.3? after: Ship 2.4?" in told
    assert "/required" in told


def test_long_texts_are_compared_line_by_line() -> None:
    lines = [f"line {number}" for number in range(40)]
    ask({"log": "\n".join(lines)})
    lines[20] = "another line"
    row = ask({"log": "\n".join(lines)})

    page = page_for_ada(row)

    signs = [one.get("data-sign") for one in page.all(class_="change-line")]
    assert signs == ["…", " ", " ", " ", "-", "+", " ", " ", " "]


def test_the_first_asking_has_no_changes() -> None:
    row = ask(BEFORE)

    assert not page_for_ada(row).all(id=f"gate-{row.pk}-changes")


def test_a_run_again_compares_with_the_run_it_repeats() -> None:
    first = factories.pending_gate(input=BEFORE)
    answered(first, approved=False)
    run = factories.make_run(factories.release_job(input=AFTER))
    type(run).objects.filter(pk=run.pk).update(rerun_of=first.run_id)
    second = factories.pending_gate(run)

    told = changes_of(second)

    assert "This asks again, in another run, a question that you answered" in told
    assert "(refused); two fields changed." in told


def test_a_question_this_reader_may_not_see_is_not_told_of() -> None:
    ask(BEFORE, audience={"users": ["ben"]})
    factories.ben()
    row = ask(AFTER)

    assert not page_for_ada(row).all(id=f"gate-{row.pk}-changes")


def test_a_masked_value_is_counted_and_not_shown() -> None:
    hints = {"sensitive": ["/version"]}
    ask({"version": "s3cret-1", "x": 1}, presentation=hints)
    row = ask({"version": "s3cret-2", "x": 1}, presentation=hints)

    told = page_for_ada(row).by_id(f"gate-{row.pk}").text

    assert "one field changed." in told
    assert "s3cret" not in told


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (["a", "b"], ["z", "a", "b"], [("/0", None, "z")]),
        (["a", "b", "c"], ["a", "c"], [("/1", "b", None)]),
        (
            ["a", "b", "c", "d"],
            ["z", "a", "c", "e"],
            [("/0", None, "z"), ("/1", "b", None), ("/3", "d", "e")],
        ),
        ([{"a": 1}], [{"a": 2}], [("/0/a", "1", "2")]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("/a", "1", "true")]),
        ({"a/b": 1}, {}, [("/a~1b", "1", None)]),
        (None, {"a": 1}, [("/", "null", '{"a":1}')]),
        ({"a": None}, {}, [("/a", "null", None)]),
    ],
)
def test_places_that_differ(before: Any, after: Any, wanted: list[tuple[Any, ...]]) -> None:
    found = [(one.path, one.before, one.after) for one in changes_between(before, after)]

    assert found == wanted


def test_hidden_marks_of_a_changed_text_are_spelled_out() -> None:
    (found,) = changes_between("\u202eevil", "good")

    assert found.before is not None
    assert "\u202e" not in found.before


def test_many_changes_and_many_lines_are_bounded() -> None:
    found = changes_between(
        {str(number): number for number in range(1_000)},
        {str(number): number + 1 for number in range(1_000)},
    )
    assert len(found) == 201
    assert found[-1] == Change("…", None, None)

    assert compared("\n".join("abc" * 500), "\n".join("abd" * 500)) == ()
