"""The form of any questions: whatever may be answered can be given on the page as it is."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from gates.forms import AnswerForm
from runs.inputs.choicefields import Chosen
from runs.inputs.validation import faults_of
from runs.kernel.jsonable import thaw
from runs.kernel.questions import Question, answer_faults, question_request, read_questions

WORDS = st.text(st.sampled_from("abé 1"), min_size=1, max_size=5).map(str.strip).filter(bool)


def _other_than(question: Question) -> st.SearchStrategy[str]:
    return WORDS.filter(lambda text: text not in question.options)


@st.composite
def _answered(draw: st.DrawFn) -> tuple[list[Question], dict[str, Any]]:
    form: list[Question] = []
    for _ in range(draw(st.integers(1, 4))):
        options = draw(st.lists(WORDS, max_size=8, unique=True))
        several = bool(options) and draw(st.booleans())
        other = draw(st.booleans())
        form.append(Question("?", options=options, multiple=several, allow_other=other))
    read = [one for one in read_questions(form) if one is not None]
    response: dict[str, Any] = {}
    for one in read:
        listed = st.sampled_from(one.options) if one.options else WORDS
        if not one.multiple:
            response[one.key] = draw(st.one_of(listed, WORDS) if one.allow_other else listed)
            continue
        ticked = draw(st.lists(listed, unique=True, max_size=3))
        written = (
            [draw(_other_than(one))]
            if one.allow_other and (not ticked or draw(st.booleans()))
            else []
        )
        response[one.key] = [*ticked, *written] or [one.options[0]]
    return read, response


def _sent(form: AnswerForm) -> QueryDict:
    """What a browser sends of a form that is filled in."""
    sent = QueryDict(mutable=True)
    for field in form:
        value = field.value()
        if isinstance(value, Chosen):
            sent.setlist(field.html_name, list(value.keys))
            sent[f"{field.html_name}-other"] = value.other
        else:
            sent.setlist(field.html_name, value if isinstance(value, list) else [value])
    return sent


@given(_answered())
def test_an_answer_comes_back_from_the_form_it_fills(
    drawn: tuple[list[Question], dict[str, Any]],
) -> None:
    questions, response = drawn
    schema: Any = thaw(question_request(("p", "s"), 1, questions).response_schema)
    form = AnswerForm(schema, _sent(AnswerForm(schema, given=response)))

    assert form.is_valid(), form.errors
    given_back = form.response()
    assert answer_faults(questions, given_back) == []
    assert faults_of(schema, given_back) == []
    assert {key: sorted(value) for key, value in given_back.items()} == {
        key: sorted(value) for key, value in response.items()
    }


@given(_answered())
def test_an_empty_form_names_every_question_that_needs_an_answer(
    drawn: tuple[list[Question], dict[str, Any]],
) -> None:
    questions, _ = drawn
    schema: Any = thaw(question_request(("p", "s"), 1, questions).response_schema)

    assert set(AnswerForm(schema, QueryDict()).errors) == {one.key for one in questions}
