"""The receipt of an answer: it holds what was decided, and what was changed in it is found."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from gates import services
from gates.models import Request
from gates.receipts import decision_receipts
from runs import record_command
from runs.archive import exports
from runs.report.verifying import ReceiptRefused, verify_receipt
from tests import factories
from tests.gates.calls import code, person, program
from tests.pages import client_of, page_of
from tests.runs.test_verify import OFF, key, sql

pytestmark = pytest.mark.django_db


def answered(**ask: Any) -> Request:
    gate = factories.pending_gate(**ask)
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": False, "note": "Später, bitte"},
    )
    return Request.objects.select_related("run").get(pk=gate.pk)


def receipt_of(row: Request) -> dict[str, Any]:
    found: dict[str, Any] = person(factories.ada()).get(f"/requests/{row.pk}/receipt").json()
    return found


def test_a_receipt_says_who_answered_what_when_and_where_it_stands() -> None:
    row = answered()

    given = receipt_of(row)

    (answer,) = given["answers"]
    submitted = row.run.events.get(kind="callback-submitted")
    assert given["question"]["requestId"] == row.request_id
    assert answer["response"] == {"approved": False, "note": "Später, bitte"}
    assert (answer["actor"], answer["surface"]) == (factories.ada().actor, "browser")
    assert (answer["seq"], answer["hash"]) == (submitted.seq, submitted.hash)
    assert given["record"]["sealed"] is True


def test_of_several_people_each_answer_stands_in_it_and_is_checked() -> None:
    gate = factories.pending_gate(needed=2, audience={"users": ["ada", "eve"]})
    eve = factories.person("eve")
    for who in (factories.key("eves", user=eve.user), factories.ada()):
        services.submit(
            gate.pk,
            principal=who,
            token=None,
            digest=gate.digest,
            response={"approved": True},
        )

    given = receipt_of(gate)

    assert [one["actor"] for one in given["answers"]] == [eve.actor, factories.ada().actor]
    assert given["how"] == "answered"
    assert len([line for line in verify_receipt(given) if line.startswith("The answer by")]) == 2


def test_an_answer_that_broke_the_glass_says_so_in_its_receipt() -> None:
    gate = factories.pending_gate()
    rex = factories.person("rex", perms=["gates.view_request", "gates.break_glass"])
    services.break_glass(
        gate.pk,
        principal=rex,
        digest=gate.digest,
        response={"approved": True},
        reason="the site is down",
    )

    given = receipt_of(gate)

    assert (given["how"], given["override"]["reason"]) == ("overridden", "the site is down")
    assert [line for line in verify_receipt(given) if "broke the glass" in line] != []
    with pytest.raises(ReceiptRefused):
        verify_receipt({**given, "override": None})


def test_it_is_checked_without_the_installation_and_beside_its_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = answered()
    receipt, file = tmp_path / "receipt.json", tmp_path / "run.jsonl"
    receipt.write_text(json.dumps(receipt_of(row)))
    file.write_text("".join(f"{line}\n" for line in exports.export_run(row.run)))
    check = ["--verify-receipt", str(receipt)]

    assert record_command.main(check) == 0
    assert "Without its record" in capsys.readouterr().out
    assert record_command.main([*check, "--record", str(file)]) == 0
    assert "the one of this receipt" in capsys.readouterr().out
    known = program(scopes=["read"]).get("/receipt-key").json()["publicKey"]
    assert record_command.main([*check, "--key", known]) == 0
    assert f"signed by the key {known}" in capsys.readouterr().out
    assert record_command.main([*check, "--key", "another"]) == 1


def test_a_record_that_is_another_than_then_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = answered()
    receipt, file = tmp_path / "receipt.json", tmp_path / "run.jsonl"
    receipt.write_text(json.dumps(receipt_of(row)))
    lines = [json.loads(line) for line in exports.export_run(row.run)]
    lines[2]["actor"] = "user:99"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    assert record_command.main(["--verify-receipt", str(receipt), "--record", str(file)]) == 1
    assert "The record was altered" in capsys.readouterr().out


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "the answer": lambda it: it["answers"][0].update(response={"approved": True}),
    "who": lambda it: it["answers"][0].update(actor="user:999999"),
    "the name": lambda it: it["answers"][0].update(name="Somebody Else"),
    "when": lambda it: it["answers"][0].update(ts=1),
    "where": lambda it: it["answers"][0].update(seq=1),
    "the event": lambda it: it["answers"][0]["event"].update(actor="user:999999"),
    "the hash before": lambda it: it["answers"][0].update(previous="0" * 64),
    "the hash": lambda it: it["answers"][0].update(hash="0" * 64),
    "the question": lambda it: it["question"].update(decisionText="Approve everything?"),
    "its input": lambda it: it["question"].update(input={"revision": "evil"}),
    "its text": lambda it: it["question"].update(canonicalText="{}"),
    "its digest": lambda it: it["question"].update(digest="0" * 64),
    "no answer": lambda it: it.update(answers=[]),
    "the run": lambda it: it["run"].update(id="another"),
    "the format": lambda it: it.update(format="x"),
    "the signature": lambda it: it["signature"].update(value="AAAA"),
    "no signature": lambda it: it.pop("signature"),
    "a signature that is none": lambda it: it["signature"].update(value="é", publicKey="?"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_is_changed_in_it_is_found(change: str) -> None:
    given = receipt_of(answered())
    assert verify_receipt(given)

    changed = copy.deepcopy(given)
    CHANGES[change](changed)

    with pytest.raises(ReceiptRefused):
        verify_receipt(changed)


@pytest.mark.parametrize("wrong", [None, [], {}, {"format": "obversa-receipt/1"}])
def test_what_is_no_receipt_is_refused(wrong: Any) -> None:
    with pytest.raises(ReceiptRefused):
        verify_receipt(wrong)


def test_masked_values_are_not_in_it_and_its_answer_is_checked_all_the_same() -> None:
    row = answered(input={"password": "s3cret"}, presentation={"sensitive": ["/password"]})

    given = receipt_of(row)

    assert "s3cret" not in json.dumps(given)
    assert given["question"]["canonicalText"] is None
    assert any("only its digest" in line for line in verify_receipt(given))


def test_it_is_the_readers_who_may_see_the_question() -> None:
    row = answered()
    path = f"/gates/{row.pk}/receipt/"

    told = client_of(factories.ada()).get(path)

    assert told["Content-Disposition"].startswith('attachment; filename="receipt-')
    assert verify_receipt(json.loads(told.content))
    assert client_of(factories.cyd()).get(path).status_code == 404
    assert code(person(factories.cyd()).get(f"/requests/{row.pk}/receipt")) == (404, "not-found")
    page = page_of(client_of(factories.ada()).get(row.get_absolute_url()))
    assert page.one("a", href=path).get("download") is not None


def test_an_open_question_has_none() -> None:
    row = factories.pending_gate()

    told = person(factories.ada()).get(f"/requests/{row.pk}/receipt")

    assert code(told) == (409, "not-answered")
    page = client_of(factories.ada()).get(f"/gates/{row.pk}/receipt/", follow=True)
    assert "no receipt" in page.content.decode()


def test_an_altered_record_is_not_signed_for() -> None:
    row = answered()
    for statement in OFF[connection.vendor]:
        sql(statement)
    sql("UPDATE runs_event SET surface = 'api' WHERE run_id = %s AND seq = 2", key(row.run))

    told = person(factories.ada()).get(f"/requests/{row.pk}/receipt")

    assert code(told) == (409, "record-altered")
    assert "Event 2" in told.json()["error"]["message"]


def test_another_secret_key_is_another_signer(settings: Any) -> None:
    before = decision_receipts.public_key()
    settings.SECRET_KEY = "another key, long enough that nobody calls it short"

    assert decision_receipts.public_key() != before
