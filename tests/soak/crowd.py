"""People and programs outside: who starts runs, who answers, over REST and on pages."""

from __future__ import annotations

import random
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import requests

from tests.faults import people, scene, work
from tests.receivers import Receiver
from tests.soak import flows
from tests.soak.ledger import Answer, Ledger, Started

PATIENCE_SECONDS = 40
CSRF = secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who is signed in, and has a key for their programs."""

    name: str
    actor: str
    key: str
    cookie: str
    operates: bool


class Crowd:
    """All who call from outside; each act says what came back to the ledger."""

    def __init__(
        self, address: str, persons: list[Person], starter: str, ledger: Ledger, outside: Receiver
    ) -> None:
        self.address = address
        self.persons = persons
        self.starter = starter
        self.ledger = ledger
        self.outside = outside
        self.loading = threading.Event()
        self.over = threading.Event()

    # --- the wire --------------------------------------------------------------------------------

    def call(
        self, what: str, method: str, path: str, key: str, body: Any = None, **headers: str
    ) -> requests.Response | None:
        """One call over REST; None when no answer came."""
        return self._send(
            what, method, f"/api/v1{path}", json=body,
            headers={"Authorization": f"Bearer {key}"} | headers,
        )  # fmt: skip

    def _send(self, what: str, method: str, path: str, **options: Any) -> requests.Response | None:
        try:
            answer = requests.request(
                method, self.address + path, timeout=PATIENCE_SECONDS, allow_redirects=False,
                **options,
            )  # fmt: skip
        except requests.RequestException as error:
            self.ledger.reply(what, type(error).__name__)
            return None
        self.ledger.reply(what, str(answer.status_code))
        return answer

    def page(self, what: str, path: str, person: Person, form: Any = None) -> str | None:
        """A page as its person sees it, or where a form leads; None when it did not work."""
        cookie = f"{person.cookie}; csrftoken={CSRF}"
        options: dict[str, Any] = {"headers": {"Cookie": cookie}}
        if form is not None:
            options["data"] = {**form, "csrfmiddlewaretoken": CSRF}
        answer = self._send(what, "GET" if form is None else "POST", path, **options)
        if answer is None or answer.status_code not in (200, 302):
            return None
        return answer.text

    # --- starting --------------------------------------------------------------------------------

    def start_runs(self, every: float) -> None:
        """Start runs for as long as there is load; one whose start was not told is asked again."""
        names = list(flows.PLANS)
        weights = [plan.weight for plan in flows.PLANS.values()]
        # Each comes at least once before chance decides.
        first = random.sample(names, len(names))
        while self.loading.is_set():
            name = first.pop() if first else random.choices(names, weights)[0]
            verdict = "no" if flows.PLANS[name].refusals and random.random() < 0.3 else "yes"
            params = {} if name in (work.SAFE, work.UNSAFE) else {"verdict": verdict}
            threading.Thread(target=self._start, args=(name, params), daemon=True).start()
            self.over.wait(random.uniform(0.5, 1.5) * every)

    def _start(self, name: str, params: dict[str, str]) -> None:
        key = secrets.token_hex(8)
        body = {"workflow": name, "params": params}
        while not self.over.is_set():
            answer = self.call(
                "start a run", "POST", "/runs", self.starter, body, **{"Idempotency-Key": key}
            )
            if answer is not None and answer.status_code == 201:
                found = answer.json()["id"]
                self.ledger.started(Started(id=found, workflow=name, params=params, key=key))
                return
            if answer is not None and answer.status_code not in (429, 500, 502, 503, 504):
                self.ledger.tell(f"a start was answered {answer.status_code}: {answer.text[:300]}")
                return
            time.sleep(0.5)
        self.ledger.tell(f"a start of {name} was never accepted")

    # --- answering -------------------------------------------------------------------------------

    def answer_questions(self) -> None:
        """Be one of those who look at what waits and answer it, until all is over."""
        while not self.over.is_set():
            person = random.choice(self.persons)
            found = self.call(
                "list questions", "GET", "/requests?status=pending&limit=50", person.key
            )
            items = found.json()["items"] if found is not None and found.ok else []
            random.shuffle(items)
            for item in items[:4]:
                # Whatever goes wrong here, somebody else looks at the question later.
                with suppress(LookupError, ConnectionError, TimeoutError):
                    self._answer(item, person)
            self.over.wait(random.uniform(0.1, 0.8) if items else 1.0)

    def _answer(self, item: dict[str, Any], person: Person) -> None:
        run = self.ledger.runs.get(item["runId"])
        if run is None:
            return
        if item["gateId"].startswith("doubt:"):
            person = next(one for one in self.persons if one.operates)
        if run.workflow == "soak-cancel":
            self._cancel(run)
            return
        response = self.reply_to(item, run)
        if response is None:
            return
        given = Answer(request=item["id"], run=run.id, actor=person.actor, response=response)
        by_page = "approved" in response and random.random() < 0.4
        # Whoever got no word asks again: the same answer twice is one answer.
        for _ in range(3):
            status = self._by_page(item, person, response) if by_page else self._by_rest(
                item, person, response
            )  # fmt: skip
            if status is True:
                self.ledger.accepted(given)
            if status is not None or self.over.is_set():
                return
            time.sleep(random.uniform(0.2, 1.0))

    def _by_rest(
        self, item: dict[str, Any], person: Person, response: dict[str, Any]
    ) -> bool | None:
        body = {"digest": item["digest"], "response": response}
        path = f"/requests/{item['id']}/submit"
        answer = self.call("answer over REST", "POST", path, person.key, body)
        if answer is None or answer.status_code >= 500 or answer.status_code == 429:
            return None
        return answer.ok

    def _by_page(
        self, item: dict[str, Any], person: Person, response: dict[str, Any]
    ) -> bool | None:
        """The question's page, then its form; a redirect is what follows an answer that counts."""
        path = f"/gates/{item['id']}/"
        if (text := self.page("open a question", path, person)) is None:
            return None
        action = re.search(r'action="([^"]+/answer/)"', text)
        if action is None:
            return False
        form = {
            "digest": item["digest"],
            "f-approved": "true" if response["approved"] else "false",
            "f-note": response["note"],
        }
        cookie = f"{person.cookie}; csrftoken={CSRF}"
        sent = {**form, "csrfmiddlewaretoken": CSRF}
        answer = self._send(
            "answer on a page", "POST", action[1], data=sent, headers={"Cookie": cookie}
        )
        if answer is None or answer.status_code >= 500:
            return None
        return answer.status_code == 302

    def _cancel(self, run: Started) -> None:
        person = self.persons[0]
        answer = self.call("cancel a run", "POST", f"/runs/{run.id}/cancel", person.key, {})
        if answer is not None and answer.ok:
            with self.ledger.lock:
                self.ledger.cancels.add(run.id)

    def reply_to(self, item: dict[str, Any], run: Started) -> dict[str, Any] | None:
        """What the run's parameters say, and the truth about what was lost; None is to wait."""
        gate, note = item["gateId"], secrets.token_hex(8)
        if gate.startswith("reconcile:"):
            return {"action": "finished" if _is_done(run, item) else "run-again"}
        if gate.startswith("doubt:"):
            posted = [message["key"] for message in self.outside.messages]
            happened = item["input"]["idempotencyKey"] in posted
            return {"outcome": "happened" if happened else "did-not-happen"}
        is_yes = not run.params or flows.yes(run.params)
        if item["kind"] == "approval" and "decision" in item["responseSchema"]["properties"]:
            return {"decision": "allow_once" if is_yes else "deny", "note": note}
        if item["kind"] == "question":
            return {"answer": note}
        if run.workflow == "soak-late" and random.random() < 0.9:
            # Most of these are left to their deadline; some are answered about when it comes.
            return None
        return {"approved": is_yes, "note": note}


def _is_done(run: Started, item: dict[str, Any]) -> bool:
    """What somebody finds who looks whether the effect of a lost step is there."""
    from django.db import DatabaseError, close_old_connections

    from runs.models import Run
    from runs.turns import folding

    try:
        last_seq = Run.objects.values_list("last_seq", flat=True).get(pk=run.id)
        state = folding.state_at(UUID(run.id), last_seq)
    except DatabaseError as error:
        raise LookupError(str(error)) from error
    finally:
        with suppress(DatabaseError):
            close_old_connections()
    return people.is_done(UUID(run.id), state, item["input"], scene.notes("effects"))


def at_work(crowd: Crowd, every: float, answerers: int) -> list[threading.Thread]:
    """Begin the load: runs that arrive, and people who answer."""
    crowd.loading.set()
    acts: list[Callable[[], None]] = [lambda: crowd.start_runs(every)]
    acts += [crowd.answer_questions] * answerers
    threads = [threading.Thread(target=act, daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    return threads
