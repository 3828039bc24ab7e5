from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gates import services, signing
from gates.models import Delivery, Request
from gates.notify import deliver, outgoing
from gates.notify.errors import NotSent
from gates.notify.spread import spread
from runs import record, sweep
from runs import services as runs_services
from runs.people.principals import Principal
from tests import factories, receivers
from tests.gates.later import later
from tests.gates.notify import ways
from tests.receivers import Receiver

pytestmark = pytest.mark.django_db
TEAM = {"groups": ["Release"]}


@pytest.fixture
def hook(settings: Any) -> Iterator[Receiver]:
    settings.OBVERSA_NOTIFY_PRIVATE = True
    with receivers.receiver() as receiver:
        ways.webhook_of("Release", receiver.url)
        yield receiver


def member() -> Principal:
    return factories.person("mia", groups=["Release"])


def test_a_question_is_posted_with_a_signature_that_the_receiver_can_check(hook: Receiver) -> None:
    gate = factories.pending_gate(audience=TEAM, question="Approve *release* 2.4.0?\nIt is big.")

    ways.send_all()

    ((headers, body),) = hook.got
    assert signing.verify(ways.SECRET, body, headers, int(time.time()))
    assert not signing.verify("another secret altogether", body, headers, int(time.time()))
    assert headers["Content-Type"] == "application/json"
    assert headers["Obversa-Event"] == "gate.requested"
    told = json.loads(body)
    assert told["id"] == str(Delivery.objects.get().uid)
    assert told["event"] == "gate.requested"
    assert told["title"] == told["request"]["question"] == "Approve release 2.4.0?"
    assert told["url"] == told["request"]["url"] == f"http://127.0.0.1:8000/gates/{gate.pk}/"
    assert told["fingerprint"] == gate.digest[:8]
    assert told["request"]["digest"] == gate.digest
    assert told["run"]["id"] == str(gate.run_id)
    assert told["text"].endswith(f"Open: {told['url']}")


def test_neither_inputs_nor_answers_leave_the_house(hook: Receiver) -> None:
    gate = factories.pending_gate(audience=TEAM, input={"password": "hunter2-in-input"})
    ways.send_all()
    services.submit(
        gate.pk,
        principal=member(),
        token=None,
        digest=gate.digest,
        response={"approved": False, "note": "hunter2-in-note"},
    )
    ways.send_all()

    assert [one["event"] for one in hook.messages][:2] == ["gate.requested", "request.answered"]
    answered = hook.messages[1]["request"]
    assert (answered["verdict"], answered["answeredByName"]) == ("refused", "mia")
    assert b"hunter2" not in b"".join(body for _, body in hook.got)


@pytest.mark.parametrize(
    ("kind", "event"),
    [("gate", "gate.requested"), ("question", "question.requested"),
     ("approval", "approval.requested")],
)  # fmt: skip
def test_each_kind_of_request_has_its_own_event(hook: Receiver, kind: str, event: str) -> None:
    gate = factories.pending_gate(audience=TEAM)
    Request.objects.filter(pk=gate.pk).update(kind=kind)

    ways.send_all()

    assert [one["event"] for one in hook.messages] == [event]


def test_time_is_told_reminder_by_reminder_and_at_the_end(hook: Receiver) -> None:
    gate = factories.pending_gate(
        audience=TEAM, expires_in_seconds=1000, remind_before_seconds=[100]
    )
    later(gate.run_id, 950)
    services.expire_due()
    sweep.advance(gate.run_id)
    ways.send_all()
    later(gate.run_id, 2000)
    sweep.advance(gate.run_id)
    ways.send_all()

    events = [one["event"] for one in hook.messages]
    assert events[:3] == ["gate.requested", "request.reminded", "request.expired"]
    assert hook.messages[2]["request"]["status"] == "expired"


def test_escalation_is_told_to_the_next_team_and_not_to_the_first(hook: Receiver) -> None:
    other = ways.webhook_of("Chiefs", hook.url)
    gate = factories.pending_gate(
        audience=TEAM,
        expires_in_seconds=1000,
        on_expiry="escalate",
        escalate_to={"groups": ["Chiefs"]},
    )
    ways.send_all()
    later(gate.run_id, 2000)
    sweep.advance(gate.run_id)
    ways.send_all()

    told = Delivery.objects.filter(kind="request.escalated")
    assert [delivery.channel for delivery in told] == [other]
    assert hook.messages[-1]["event"] == "request.escalated"


def test_a_run_that_ends_is_told_to_the_teams_of_its_audience(hook: Receiver) -> None:
    run = factories.make_run(audience=TEAM)
    runs_services.cancel_run(run.pk, actor="user:0")

    ways.send_all()

    assert [one["event"] for one in hook.messages] == ["run.cancelled"]
    assert hook.messages[0]["request"] is None


def test_a_receiver_that_is_down_gets_the_same_id_once_it_is_up(hook: Receiver) -> None:
    hook.answers[:] = [503, 429, 200]
    factories.pending_gate(audience=TEAM)

    ways.send_all()

    assert len({one["id"] for one in hook.messages}) == 1
    assert len(hook.got) == 3
    assert ways.states() == [("gate.requested", "sent")]


@pytest.mark.parametrize("status", [301, 307, 400, 404, 410, 422])
def test_an_answer_that_will_not_change_is_not_tried_again(hook: Receiver, status: int) -> None:
    hook.answers[:] = [status]
    hook.headers = {"Location": hook.url}
    factories.pending_gate(audience=TEAM)

    ways.send_all()

    assert len(hook.got) == 1
    assert Delivery.objects.get().error == f"The host answered {status}."


def test_the_receiver_says_how_long_it_wants_to_be_left_alone(
    hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.answers[:] = [429]
    hook.headers = {"Retry-After": "30"}
    factories.pending_gate(audience=TEAM)
    spread()
    now = record.database_now()
    monkeypatch.setattr(record, "database_now", lambda: now)

    deliver.deliver(deliver.due_channels()[0])

    assert (Delivery.objects.get().next_at - now).total_seconds() == 30


def test_a_webhook_whose_sender_died_is_told_again_with_the_same_id(hook: Receiver) -> None:
    factories.pending_gate(audience=TEAM)
    spread()
    claimed = deliver._claim(deliver.due_channels()[0])
    assert claimed is not None
    Delivery.objects.update(on_wire=True, lease_until=datetime(2020, 1, 1, tzinfo=UTC))

    ways.send_all()

    assert ways.states() == [("gate.requested", "sent")]
    assert hook.messages[0]["id"] == str(claimed.uid)


def test_a_receiver_that_answers_byte_by_byte_is_cut_off(settings: Any) -> None:
    settings.OBVERSA_NOTIFY_PRIVATE = True
    done = threading.Event()

    def drip(listening: socket.socket) -> None:
        sock, _ = listening.accept()
        with sock:
            while not done.wait(0.05):
                try:
                    sock.sendall(b"H")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(NotSent) as failure:
            outgoing.post(address, b"{}", {}, seconds=0.4)
        done.set()
        thread.join()

    assert failure.value.retryable
    assert address not in failure.value.text


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1500),
        ({"retry-after-ms": "0", "retry-after": "9"}, 0),
        ({"retry-after-ms": "-5", "retry-after": "9"}, 9000),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9000),
        ({"retry-after-ms": "-5"}, None),
        ({"retry-after": "2.5"}, 2500),
        ({"retry-after": "0.5"}, 500),
        ({"retry-after": "600"}, 600_000),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:10 GMT"}, 10_000),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:00 GMT"}, 0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_hints_are_read_as_servers_write_them(headers: dict[str, str], wait: int | None) -> None:
    assert outgoing.hint_ms(headers, datetime(2025, 1, 1, tzinfo=UTC)) == wait
