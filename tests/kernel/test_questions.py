"""Typed questions: how they are read, what answers them, and how many there may be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.inputs.validation import faults_of
from runs.kernel import callbacks, questions
from runs.kernel.answers import refusal
from runs.kernel.jsonable import thaw
from runs.kernel.questions import Question, read_questions

PATH = ("release", "build")
WORDS = st.text(st.sampled_from("ab é\n\t1"), min_size=1, max_size=6)


def usable(*given: Any) -> list[Question]:
    return [one for one in read_questions(given) if one is not None]


def request(*given: Any, call: int = 1, path: tuple[str, ...] = PATH, **more: Any) -> Any:
    return questions.question_request(path, call, usable(*given), **more)


def keys(*given: Any) -> list[str]:
    return [one.key for one in usable(*given)]


def test_a_question_is_a_text_a_mapping_or_a_question() -> None:
    (plain,) = usable("  Which?  ")
    (wire,) = usable({"prompt": "Which?", "options": ["a", 2, "a", " "], "allowOther": True})

    assert plain.to_wire() == {
        "key": "answer",
        "prompt": "Which?",
        "options": [],
        "multiple": False,
        "allowOther": True,
        "required": True,
    }
    assert (wire.options, wire.allow_other) == (("a", "2"), True)
    assert usable(Question("Which?", options=["a"]))[0].allow_other is False


def test_keys_are_given_by_place_and_meet_no_other() -> None:
    assert keys("One?") == ["answer"]
    assert keys("One?", "Two?") == ["answer1", "answer2"]
    assert keys(Question("One?", key="a"), Question("Two?", key="a")) == ["a", "answer2"]
    assert keys("One?", Question("Two?", key="answer1")) == ["answer1_", "answer1"]
    named = [Question("One?", key="answer2"), "Two?", Question("Three?", key="answer2")]
    assert keys(*named)[0] == "answer2"
    assert len(set(keys(*named))) == 3


def test_a_blank_question_is_dropped_and_keeps_its_place_in_the_answers() -> None:
    read = read_questions(["  ", "Which?"])

    assert [one is None for one in read] == [True, False]
    assert questions.answers_of(read, {"answer": "this"}) == [None, "this"]


def test_a_long_prompt_is_cut() -> None:
    assert len(usable("x" * 900)[0].prompt) == 500


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "no question"),
        ([" "], "no question"),
        ("Which?", "no list"),
        ([3], "question 1 is no question but int"),
        ([{"options": []}], "question 1 cannot be asked: it has no prompt"),
        (["ok", {"prompt": "x", "option": []}], "question 2 cannot be asked: 'option'"),
        ([Question("Which?", multiple=True)], "multiple needs options"),
        ([Question("Which?", options="abc")], "no list"),
        ([Question("Which?", options=[{}])], "texts or numbers"),
        ([Question("Which?", options=list(range(101)))], "more than 100 options"),
        ([{"prompt": "Which?", "required": "yes"}], "true or false"),
        ([{"prompt": None}], "are texts"),
    ],
)
def test_what_cannot_be_asked_is_named(given: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        read_questions(given)


def test_the_same_questions_are_one_request_and_others_another() -> None:
    first = request("Which?")

    assert request("Which?") == first
    others = [
        request("Which one?"),
        request("Which?", call=2),
        request("Which?", path=("release", "check")),
        request("Which?", about={"revision": "abc"}),
        request(Question("Which?", required=False)),
    ]
    assert len({one.request_id for one in (first, *others)}) == 6


def test_one_question_is_the_text_of_its_request_and_several_have_a_title() -> None:
    assert request("Which?").decision_text == "Which?"
    assert request("One?", "Two?").decision_text == "One? (and 1 more)"
    assert request("One?", title="Before the release").decision_text == "Before the release"
    shown = request("One?", "Two?").response_schema["properties"]
    assert [field["title"] for field in shown.values()] == ["One?", "Two?"]


def test_a_run_asks_a_hundred_questions_at_most() -> None:
    state = callbacks.empty()
    for call in range(1, 6):
        asked = request(*(f"{number}?" for number in range(19)), call=call)
        assert questions.asked_count(asked) == 19
        state = callbacks.fold_all(state, callbacks.post(state, asked))

    assert not questions.too_many(state, request(*"abcde", call=6))
    assert questions.too_many(state, request(*"abcdef", call=6))
    # What was put already counts once.
    assert not questions.too_many(state, asked)


def test_a_form_that_no_host_could_read_is_not_made() -> None:
    long = [Question(f"{n}?", options=[f"{m:0500}" for m in range(100)]) for n in range(5)]

    with pytest.raises(ValueError, match="more than 200000 characters"):
        request(*long)
    assert faults_of(_schema(usable(*long[:3])), {}) == [
        (f"answer{n}", "This is required.") for n in (1, 2, 3)
    ]


def test_other_requests_count_as_no_question() -> None:
    other = callbacks_request(gate_id="questions", input={"questions": ["a"]})

    assert questions.asked_count(other) == 0
    assert questions.asked_count(callbacks_request(gate_id="questions:x", input=None)) == 0


def callbacks_request(**changes: Any) -> Any:
    from tests.kernel.questions import question

    return question(**changes)


# --- any questions, any answers -------------------------------------------------------------------


@st.composite
def _question(draw: st.DrawFn) -> Question:
    options = draw(st.lists(WORDS, max_size=4))
    some = any(option.strip() for option in options)
    return Question(
        draw(WORDS.filter(lambda text: text.strip())),
        key=draw(st.sampled_from(["", "a", "b", "note", "approved"])),
        options=options,
        multiple=some and draw(st.booleans()),
        allow_other=draw(st.booleans()),
        required=draw(st.booleans()),
    )


FORMS = st.lists(_question(), min_size=1, max_size=5).map(lambda given: usable(*given))


def _value(question: Question) -> st.SearchStrategy[str]:
    some = WORDS.filter(lambda text: text.strip())
    listed = st.sampled_from(question.options) if question.options else some
    return st.one_of(listed, some) if question.allow_other else listed


@st.composite
def _answered(draw: st.DrawFn) -> tuple[list[Question], dict[str, Any]]:
    form = draw(FORMS)
    response: dict[str, Any] = {}
    for one in form:
        if not one.required and draw(st.booleans()):
            continue
        several = st.lists(_value(one), min_size=int(one.required), max_size=3, unique=True)
        response[one.key] = draw(several if one.multiple else _value(one))
    return form, response


def _schema(form: list[Question]) -> dict[str, Any]:
    schema = questions.question_request(PATH, 1, form).response_schema
    plain: dict[str, Any] = thaw(schema)
    return plain


@given(_answered())
def test_every_answer_that_fits_is_taken(drawn: tuple[list[Question], dict[str, Any]]) -> None:
    form, response = drawn
    schema = _schema(form)

    assert questions.answer_faults(form, response) == []
    assert faults_of(schema, response) == []
    assert refusal(schema, response) is None
    answers = questions.answers_of(form, response)
    assert answers == [response.get(one.key, [] if one.multiple else None) for one in form]


WRONG = st.sampled_from(
    [None, 3, True, {"a": 1}, "", "\t", "zz", [], ["zz"], ["a", "a"], [""], [7]]
)


@given(_answered(), st.data())
def test_a_wrong_answer_is_refused_at_its_own_field(
    drawn: tuple[list[Question], dict[str, Any]], data: st.DataObject
) -> None:
    form, response = drawn
    one = data.draw(st.sampled_from(form))
    response[one.key] = data.draw(WRONG)
    told = {key for key, _words in questions.answer_faults(form, response)}

    assert told <= {one.key}
    assert {key for key, _words in faults_of(_schema(form), response)} == told


@given(_answered(), st.data())
def test_what_is_missing_or_not_asked_for_is_named(
    drawn: tuple[list[Question], dict[str, Any]], data: st.DataObject
) -> None:
    form, response = drawn
    gone = data.draw(st.sampled_from(form))
    response.pop(gone.key, None)
    response["unasked"] = "x"
    wanted = {"unasked"} | ({gone.key} if gone.required else set())

    assert {key for key, _words in questions.answer_faults(form, response)} == wanted
    assert {key for key, _words in faults_of(_schema(form), response)} == wanted
