from __future__ import annotations

from django.http import QueryDict

from gates.forms import AnswerForm
from runs.kernel.approvals import APPROVAL_SCHEMA, RECONCILE_SCHEMA


def posted(text: str) -> QueryDict:
    return QueryDict("&".join(f"f-{part}" for part in text.split("&")))


def test_an_approval_has_two_verdicts_for_buttons() -> None:
    form = AnswerForm(dict(APPROVAL_SCHEMA), routing={"target": "build"})

    assert form.is_approval
    assert (form.verdict_name, form.yes_label, form.no_label) == (
        "f-approved",
        "Approve",
        "Send back to build",
    )
    assert form.note_required_on_no


def test_sending_work_back_takes_a_note() -> None:
    def answered(data: str) -> AnswerForm:
        return AnswerForm(dict(APPROVAL_SCHEMA), posted(data), routing={"target": "build"})

    assert list(answered("approved=false&note=+").errors) == ["note"]
    assert answered("approved=false&note=why").is_valid()
    assert answered("approved=true").is_valid()


def test_a_question_that_is_no_approval_has_one_button() -> None:
    form = AnswerForm(dict(RECONCILE_SCHEMA), posted("action=finished&data="))

    assert not form.is_approval
    assert form.is_valid()
    assert form.response() == {"action": "finished"}


def test_hints_of_the_presentation_name_the_buttons_and_reasons() -> None:
    hints = {"yesLabel": "Ship it", "noLabel": 7, "confirm": True, "reasons": ["too late", 3]}
    form = AnswerForm(dict(APPROVAL_SCHEMA), presentation=hints)

    assert (form.yes_label, form.no_label, form.confirm_yes) == ("Ship it", "Refuse", True)
    assert form.reasons == ["too late"]
